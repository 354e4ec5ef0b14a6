package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"authguard/limiter"
)

// Errors of Check. A refusal is a *[Denied]; a cost that no wait would ever
// admit is [limiter.ErrCostTooHigh].
var (
	// ErrNoPolicy reports an action that no policy names: a mistake in the
	// program, which is refused rather than let through.
	ErrNoPolicy = errors.New("guard: no policy for this action")

	// ErrMissing reports an attempt that lacks what a rule counts by, such as
	// an API key where the policy counts by it: a mistake in the program. An
	// account that is left out is no mistake; see ErrNoAccount.
	ErrMissing = errors.New("guard: the attempt lacks what a rule counts by")

	// ErrNoAccount is the ErrMissing that a client can bring about: all rules
	// count by account, and what was typed is none, such as an empty field.
	ErrNoAccount = fmt.Errorf("%w: no account, and nothing else is counted", ErrMissing)

	// ErrUnavailable reports that the store or the resolver failed, so that
	// nobody can say whether the attempt is within its limits.
	ErrUnavailable = errors.New("guard: limits cannot be checked now")
)

// Check charges a to all the rules of its action, in one call of the store, and
// gives a Pass with which the caller tells how the attempt ended. If the caller
// never does, the attempt counts as a failure, and for as long as it could still
// settle, up to twenty seconds, others whom its charges refuse wait for that.
//
// The error is *Denied if a rule refuses; then nothing was charged. It is one
// of ErrUnavailable, ErrNoPolicy, ErrMissing and limiter.ErrCostTooHigh if the
// question could not be answered, or ctx's if that has ended. On every error the
// secret must not be looked at.
func (g *Guard) Check(ctx context.Context, a Attempt) (*Pass, error) {
	p, err := g.policy(a.Action)
	if err != nil {
		return nil, err
	}
	if err := g.denied(ctx, &a); err != nil {
		return nil, err
	}
	who, err := g.identify(ctx, p, &a)
	if err != nil {
		return nil, g.undecided(ctx, p.action, err)
	}
	var buf [8]subjectHash
	subjects := g.subjects(buf[:0], p, &a, &who)
	pass, err := newPass(p, g.limitsFor(p, &who, &a), subjects, cmp.Or(a.Cost, 1))
	if err != nil {
		return nil, err
	}
	pass.Account, pass.guard, pass.trusted = who.account, g, who.trusted
	if !a.IP.IsValid() && p.countsAddresses {
		g.observe(ctx, Event{Kind: Unaddressed, Action: p.action})
	}
	ok, err := g.takeAnswered(ctx, pass, subjects, &a, &who)
	switch {
	case err != nil:
		if errors.Is(err, ErrUnavailable) {
			g.records.asked(pass, &a, &who, RecordUnavailable)
		}
		return nil, g.undecided(ctx, p.action, err)
	case !ok:
		g.records.asked(pass, &a, &who, RecordRefused)
		g.observeDenials(ctx, pass, 0)
		denied := newDenied(pass)
		denied.Challenge = g.pose(pass, &a, &who)
		return nil, denied
	}
	g.index.exhausted(pass, &a, &who)
	seen := 0
	for i := range pass.charges { // the limits of an advisory rule stand side by side, the rules in any order: see setAside
		if c := &pass.charges[i]; c.Advisory > 0 && c.Advisory != seen && !c.Taken {
			seen = c.Advisory
			g.observeDenials(ctx, pass, c.Advisory)
			pass.silenced = pass.silenced || pass.rule(i).Effect == Silent
		}
	}
	is := RecordAdmitted
	if pass.silenced {
		is = RecordSilenced
	}
	g.records.asked(pass, &a, &who, is)
	g.observe(ctx, Event{Kind: Admitted, Action: p.action})
	return pass, nil
}

// identify is the account of an attempt under p, and its client's class.
func (g *Guard) identify(ctx context.Context, p *policy, a *Attempt) (identity, error) {
	if !p.countsAccounts {
		return identity{account: g.canonical(a.Account)}, nil // whose id nobody needs
	}
	who, err := g.identifyAccount(ctx, p.action, a.Account)
	if err != nil {
		return identity{}, err
	}
	return g.recognise(who, a.Device), nil
}

// identifyAccount resolves an account. A name that cannot be one is nobody's: the
// attempt is charged to its address, and the application, given no account, finds
// nobody.
func (g *Guard) identifyAccount(ctx context.Context, action, account string) (identity, error) {
	who := identity{account: g.canonical(account)}
	if who.account == "" || g.resolve == nil {
		return who, nil
	}
	known, err := g.resolve(ctx, who.account)
	if err != nil {
		return identity{}, g.unavailable(ctx, action, fmt.Errorf("resolver: %w", err))
	}
	who.known = known
	return who, nil
}

// unavailable is what became of a question that err left without an answer. A
// client that has gone away is no fault of the store, and raises no alarm.
func (g *Guard) unavailable(ctx context.Context, action string, err error) error {
	if limiter.Gone(ctx) {
		return cmp.Or(context.Cause(ctx), context.DeadlineExceeded)
	}
	g.observe(ctx, Event{Kind: Broken, Action: action, Err: err})
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}

// undecided reports the attempt that err refuses because nobody can say.
func (g *Guard) undecided(ctx context.Context, action string, err error) error {
	if errors.Is(err, ErrUnavailable) {
		g.observe(ctx, Event{Kind: Unavailable, Action: action})
	}
	return err
}

func (g *Guard) canonical(account string) string {
	if g.opaque {
		if len(account) > maxAccount {
			return ""
		}
		return account
	}
	name, err := Canonical(account)
	if err != nil {
		return ""
	}
	return name
}

// limitsFor are the limits of p that an attempt of who is charged to.
func (g *Guard) limitsFor(p *policy, who *identity, a *Attempt) []ruleLimit {
	limits := p.untrusted
	switch {
	case who.trusted:
		limits = p.trusted
	case who.account == "":
		limits = p.anonymous
	}
	if !a.IP.IsValid() {
		limits = limits[:max(0, len(limits)-len(g.hashes))] // there is no address that could be blocked
	}
	if g.lists.Load().allow.has(a.IP) {
		limits = p.lifted(limits)
	}
	return limits
}
