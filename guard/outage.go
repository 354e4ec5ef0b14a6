package guard

import (
	"context"
	"errors"
	"fmt"

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

// decideWithout decides a pass whose store has failed: by the rules that count
// locally, if no other rule refuses. It is for a fault of the store only, never
// for a denial.
func (g *Guard) decideWithout(ctx context.Context, pass *Pass, fault error) (bool, error) {
	g.observe(ctx, Event{Kind: Broken, Action: pass.policy.action, Err: fault})
	var (
		limits  []ruleLimit
		charges []limiter.Charge
	)
	for i, l := range pass.limits {
		switch r := pass.rule(i); {
		case r.OnOutage == OutageLocal:
			c := pass.charges[i]
			c.Limit, c.Taken, c.Decision = l.local, false, limiter.Decision{}
			limits, charges = append(limits, l), append(charges, c)
		case r.OnOutage == OutageDeny && r.Effect == Deny:
			return false, fmt.Errorf("%w: %w", ErrUnavailable, fault)
		case r.OnOutage == OutageDeny && r.Effect == Silent:
			pass.silenced = true
		}
	}
	pass.limits, pass.charges, pass.store = limits, charges, g.local
	g.observe(ctx, Event{Kind: Degraded, Action: pass.policy.action})
	if len(charges) == 0 {
		return true, nil
	}
	ok, err := g.local.Take(ctx, charges)
	if err != nil {
		return false, fmt.Errorf("%w: %w, and locally: %w", ErrUnavailable, fault, err)
	}
	return ok, nil
}
