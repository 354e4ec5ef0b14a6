// Package guard decides whether somebody may try a secret: a password, a reset
// token, an API key.
//
// A [Guard] is made once from a store, a secret and policies, and asked before
// the secret is looked at:
//
//	pass, err := g.Check(ctx, guard.Attempt{Action: "login", Account: email, IP: addr})
//	if err != nil {
//		httpguard.Refuse(w, r, err) // *guard.Denied: 429 with Retry-After
//		return
//	}
//	if verify(pass.Account, password) {
//		pass.Succeed(ctx)
//	} else {
//		pass.Fail(ctx)
//	}
//
// Check charges every rule of the action's [Policy] in one step of the store,
// before it answers. So however many attempts are in flight, no more than the
// limit reach the password. A success then gives its own charge back on rules
// that count failures; whatever else happens (a wrong password, a panic, a
// client that hangs up, a crash of this process) leaves the charge standing.
//
// Strict limits can be turned against an owner, who is kept out by what strangers
// try. [Guard.TrustDevice] makes the browser of an owner who has succeeded known,
// and rules may count known clients and strangers apart ([Rule.Clients]).
//
// A rule may ask for a [Puzzle] to be solved instead of waiting ([Challenge]), which a
// [Challenger] of the application poses and verifies.
//
// Operators ask why somebody is refused ([Guard.Inspect]) and who is ([Guard.Refused]),
// open accounts ([Guard.Unlock]) and close accounts and addresses ([Guard.Block],
// [Lists]).
//
// A guard never allows by default: its zero value, an action without a policy,
// an attempt without the API key, tenant or part that a rule counts by and a
// store that does not answer are all errors. Two things a stranger can leave out
// are no errors: without an account the rules by account do not count and
// [Pass.Account] is "", which no account has, so that the attempt must fail;
// without an address all attempts are one client.
package guard
