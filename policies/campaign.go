package policies

import (
	"context"
	"time"

	"authguard/guard"
)

// campaign is all attacks on one policy in one scenario.
type campaign struct {
	whole    guard.Policy // the guard's
	policy   guard.Policy // as far as the guesser is concerned
	scenario scenario
	budget   int // attempts of an attack
	asked    bool
}

// result is the best of all tactics.
func (c *campaign) result(ctx context.Context) result {
	if !c.scenario.bounded(c.policy) {
		f := Figure{Unbounded: true}
		return result{figures: figures{f, f, f, f, f, f, f}}
	}
	var best result
	start := alignedStart(c.policy)
	all := oneAccount(c.policy, c.scenario, start)
	switch {
	case c.scenario.everyNew():
		all = []tactic{{newFirst: true, start: start, life: year}}
	case c.scenario.manyAccounts:
		t, err := c.manyAccounts(ctx, start, &best)
		if err != nil {
			return result{err: err}
		}
		all = []tactic{t}
	}
	for _, window := range clockWindows(c.policy) {
		late := all[0]
		late.start, late.life = (start/window+1)*window-1, 2*time.Hour
		all = append(all, late)
	}
	for _, t := range all {
		a, err := c.carryOut(ctx, t, c.budget)
		if err != nil {
			return result{err: err}
		}
		best.better(a)
	}
	best.asked = c.asked
	return best
}

func (c *campaign) carryOut(ctx context.Context, t tactic, budget int) (*attack, error) {
	a, err := newAttack(c, t, budget)
	if err == nil {
		err = a.run(ctx)
		c.asked = c.asked || a.asked
	}
	return a, err
}
