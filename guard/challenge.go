package guard

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"authguard/limiter"
)

// A Puzzle is what a client may solve instead of waiting: only rules with effect
// challenge have refused the attempt. The client repeats the attempt within five
// minutes and brings, as Attempt.Challenge, the token, a dot and the solution.
type Puzzle struct {
	// Kind names the puzzle for whoever solves it, as "turnstile" or "proof-of-work".
	Kind string `json:"kind"`

	// Token is good for one attempt that gets through, of the same action, account
	// and address: letters, digits, - and _.
	Token string `json:"token"`

	// Params are what the kind needs besides, such as a site key.
	Params map[string]string `json:"params,omitempty"`
}

// A Challenger poses challenges of one kind and tells whether they are solved: a
// CAPTCHA service, or a puzzle of the application's own. It is safe for concurrent
// use. Tokens are the guard's; a challenger keeps no state.
type Challenger interface {
	// Pose makes the challenge with this token. It is called for each attempt that
	// is asked for one, so it must be quick.
	Pose(token string) Puzzle

	// Verify reports whether solution, which may be any text of up to 4 KiB, solves
	// the challenge with this token. The guard has signed the token, and it is the
	// attempt's own. It may come several times, since only one that gets through uses
	// it up: a service that is asked over a network needs a bound on calls at once.
	//
	// An error says that nobody knows, as when the service is down; the attempt then
	// counts as one without an answer. ctx ends after three seconds at most, and
	// Verify must end with it.
	Verify(ctx context.Context, token, solution string, a Attempt) (bool, error)
}

const (
	challengeLifetime = 5 * time.Minute
	challengeTimeout  = 3 * time.Second // of Verify

	// maxAnswer bounds an answer, in bytes: CAPTCHA services' run to about 2,000.
	maxAnswer = 4096
)

// A token is used up by a charge of the only unit of a limit on its nonce, in the
// step that charges everything else: so an attempt that is refused does not use it
// up, and of several at one instant one has it, whatever instances they reach. It
// lasts longer than a token, for clocks that differ.
var (
	once     = limiter.SlidingWindow{Limit: 1, Window: 2 * challengeLifetime}
	onceRule = Rule{Name: "challenge", OnOutage: OutageLocal}
)

// ofToken in place of a rule's index marks the charge that uses a token up.
const ofToken = -1

// takeAnswered charges a pass with the answer that a brings. If that is worth
// nothing, it is as if there were none.
func (g *Guard) takeAnswered(ctx context.Context, p *Pass, subjects []subjectHash, a *Attempt, who *identity) (bool, error) {
	if a.Challenge == "" || g.challenger == nil || !slices.ContainsFunc(p.limits, ruleLimit.asks) {
		return g.takeInTurn(ctx, p)
	}
	nonce, solved := g.verify(ctx, a, who)
	if !solved {
		return g.takeInTurn(ctx, p)
	}
	bare := p.limits
	p.lift(g.onceKey.of(g.hashes[0].end(g.hashes[0].begin(kindChallenge).part(string(nonce[:])))))
	ok, err := g.takeInTurn(ctx, p)
	if ok {
		g.observe(ctx, Event{Kind: Solved, Action: a.Action})
	}
	if ok || err != nil || !p.tokenUsed() {
		return ok, err
	}
	g.observe(ctx, Event{Kind: Unsolved, Action: a.Action})
	anew, err := newPass(p.policy, bare, subjects, cmp.Or(a.Cost, 1))
	if err != nil {
		return false, err
	}
	p.limits, p.charges, p.shared, p.inSlots, p.degraded, p.silenced = bare, anew.charges, 0, 0, false, false
	return g.takeInTurn(ctx, p)
}

// verify reports whether a brings the solution of a challenge that it was posed.
// What needs no service is looked at first.
func (g *Guard) verify(ctx context.Context, a *Attempt, who *identity) (challengeNonce, bool) {
	var nonce challengeNonce
	text, solution, found := strings.Cut(a.Challenge, ".")
	ok := found && len(a.Challenge) <= maxAnswer
	if ok {
		nonce, ok = g.tokens.open(text, a, who, g.now())
	}
	var err error
	if ok {
		short, cancel := context.WithTimeout(ctx, challengeTimeout)
		ok, err = g.challenger.Verify(short, text, solution, *a)
		cancel()
	}
	switch {
	case err != nil:
		if !limiter.Gone(ctx) { // a client that has gone away is no fault of the service
			g.observe(ctx, Event{Kind: Unverified, Action: a.Action, Err: err})
		}
		return nonce, false
	case !ok:
		g.observe(ctx, Event{Kind: Unsolved, Action: a.Action})
	}
	return nonce, ok
}

// pose is the challenge for an attempt that was refused; nil if a solution would
// not help, because another rule refuses it, too.
func (g *Guard) pose(p *Pass, a *Attempt, who *identity) *Puzzle {
	if g.challenger == nil {
		return nil
	}
	for i := range p.charges {
		if c := &p.charges[i]; c.Advisory == 0 && !c.Decision.Allowed && !p.limits[i].asks() {
			return nil
		}
	}
	c := g.challenger.Pose(g.tokens.seal(a, who, g.now()))
	return &c
}

// asks reports that a denial by l asks for a challenge.
func (l ruleLimit) asks() bool { return l.lifted > 0 }

// lift takes the vote from the rules that a solved challenge lifts, and adds the
// charge of key, which uses its token up.
func (p *Pass) lift(key string) {
	for i, l := range p.limits {
		if l.asks() {
			p.charges[i].Advisory = l.lifted
		}
	}
	p.limits = append(slices.Clip(p.limits), ruleLimit{rule: ofToken, kind: -1, members: -1, limit: once, local: once})
	p.charges = append(p.charges, limiter.Charge{Key: key, Limit: once, Ask: limiter.Ask{Cost: 1}})
}

// tokenUsed reports that the token of a refused pass was used up before.
func (p *Pass) tokenUsed() bool {
	for i := range p.charges {
		if p.limits[i].rule == ofToken {
			return !p.charges[i].Decision.Allowed
		}
	}
	return false
}
