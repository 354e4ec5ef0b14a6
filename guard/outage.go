package guard

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"authguard/limiter"
)

// Outage is what a rule does while the store cannot answer.
type Outage uint8

const (
	// OutageDeny refuses every attempt with [ErrUnavailable]. It is the zero value.
	OutageDeny Outage = iota

	// OutageLocal counts in this process's memory, with this process's share of
	// the limit (Config.Instances). What was counted there stays through the
	// recovery and the next outage, so that any number of outages gives one
	// local budget a window.
	OutageLocal

	// OutageAllow lets the attempt pass, for rules that guard no secret.
	OutageAllow
)

func (o Outage) String() string {
	switch o {
	case OutageDeny:
		return "deny"
	case OutageLocal:
		return "local"
	case OutageAllow:
		return "allow"
	}
	return fmt.Sprintf("Outage(%d)", uint8(o))
}

// isOutage reports that err is a fault of the store: no mistake in what it was
// asked, and no crowd that somebody sends. Only then do the rules' OnOutage decide.
func isOutage(err error) bool {
	if errors.Is(err, limiter.ErrState) {
		return true
	}
	return !errors.As(err, new(*limiter.ChargeError)) &&
		!errors.Is(err, limiter.ErrCostTooHigh) && !errors.Is(err, limiter.ErrOverloaded)
}

// take charges a pass to the store, and what the store cannot answer for as the
// rules' OnOutage say.
func (g *Guard) take(ctx context.Context, p *Pass) (bool, error) {
	p.shared = len(p.charges)
	ok, err := g.store.Take(ctx, p.charges)
	if err == nil {
		return ok, nil
	}
	for err != nil {
		switch {
		case limiter.Gone(ctx), errors.Is(err, limiter.ErrOverloaded):
			return false, g.unavailable(ctx, p.policy.action, err)
		case !isOutage(err):
			return false, err
		}
		if err := p.setAside(ctx, err); err != nil {
			return false, err
		}
		if ok, err := g.takeLocally(ctx, p); err != nil || !ok {
			return false, err
		}
		if p.shared == 0 {
			ok = true
			break
		}
		if ok, err = g.store.Take(ctx, p.charges[:p.shared]); !ok {
			p.refundLocal(ctx)
		}
	}
	g.observe(ctx, Event{Kind: Degraded, Action: p.policy.action})
	return ok, nil
}

// takeLocally charges what was set aside. If that denies, the store need not be
// asked, and the refusal is by these rules alone.
func (g *Guard) takeLocally(ctx context.Context, p *Pass) (bool, error) {
	local := p.charges[p.shared:]
	if len(local) == 0 {
		return true, nil
	}
	ok, err := g.local.Take(ctx, local)
	if err != nil {
		return false, g.unavailable(ctx, p.policy.action, fmt.Errorf("counting locally: %w", err))
	}
	if !ok {
		g.observe(ctx, Event{Kind: Degraded, Action: p.policy.action})
		p.charges, p.limits, p.shared = local, p.limits[p.shared:], 0
	}
	return ok, nil
}

// setAside takes the charges that fault is about out of those for the store: the
// one whose key cannot be read, or all. Their rules say what becomes of them.
func (p *Pass) setAside(ctx context.Context, fault error) error {
	p.degraded = true
	all, broken := true, -1
	event := Event{Kind: Broken, Action: p.policy.action, Err: fault}
	var key *limiter.ChargeError
	if errors.As(fault, &key) && key.Index >= 0 && key.Index < p.shared {
		all, broken = false, key.Index
		event.Rule = p.rule(broken).Name
	}
	p.guard.observe(ctx, event)
	var limits, asideLimits []ruleLimit
	var charges, aside []limiter.Charge
	for i, l := range p.limits[:p.shared] {
		c, r := p.charges[i], p.rule(i)
		group := !all && c.Advisory > 0 && c.Advisory == p.charges[broken].Advisory // which stay together
		switch {
		case !all && i != broken && !group:
			limits, charges = append(limits, l), append(charges, c)
		case r.OnOutage == OutageLocal:
			c.Limit, c.Taken, c.Decision = l.local, false, limiter.Decision{}
			asideLimits, aside = append(asideLimits, l), append(aside, c)
		case r.OnOutage == OutageDeny && c.Advisory == 0:
			return fmt.Errorf("%w: %w", ErrUnavailable, fault)
		case r.OnOutage == OutageDeny && r.Effect == Silent:
			p.silenced = true
		}
	}
	local := p.shared
	p.shared = len(charges)
	p.charges = slices.Concat(charges, p.charges[local:], aside)
	p.limits = slices.Concat(limits, p.limits[local:], asideLimits)
	return nil
}
