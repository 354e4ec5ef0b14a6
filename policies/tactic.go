package policies

import (
	"context"
	"time"

	"authguard/guard"
)

// A tactic is one way to carry out an attack.
type tactic struct {
	newFirst   bool          // prefer identities that were not used yet
	pauseAfter int64         // leave an account alone after so many attempts, 0: never
	pause      time.Duration // so long, if it is the only one
	start      int64         // the instant of the first attempt
	life       time.Duration // how long the attack lasts
}

const year = 365 * day

// oneAccount are the tactics for one account.
func oneAccount(p guard.Policy, s scenario, start int64) []tactic {
	all := []tactic{{start: start, life: year}}
	if b, ok := streakOf(p); ok {
		all = append(all, tactic{pauseAfter: b.Free, pause: max(b.Forget, b.Base), start: start, life: year})
		if s.owner && b.LockAfter > 0 { // who will end the streak if it is not locked
			all = append(all, tactic{pauseAfter: b.LockAfter - 1, pause: b.ForgetBeyond, start: start, life: year})
		}
	}
	if countsIdentities(p, s) {
		all = append(all, tactic{newFirst: true, start: start, life: year})
	}
	return all
}

// manyAccounts is the tactic for all accounts that is the best in the long run:
// after how many attempts at one account it pays to go on with another. That is
// tried out for three days; what was best on the way goes into res.
func (c *campaign) manyAccounts(ctx context.Context, start int64, res *result) (tactic, error) {
	best := tactic{start: start, life: year}
	b, streak := streakOf(c.policy)
	counts := countsIdentities(c.policy, c.scenario)
	if !streak && !counts {
		return best, nil // all accounts are worth the same
	}
	most := int64(0)
	scout := func(t tactic) error {
		t.life = 3 * day
		a, err := c.carryOut(ctx, t, c.budget/8)
		if err != nil {
			return err
		}
		res.better(a)
		if n := a.until(year).N; n > most {
			t.life = year
			most, best = n, t
		}
		return nil
	}
	for _, n := range c.portions(b.Free) {
		if err := scout(tactic{pauseAfter: n, start: start}); err != nil {
			return best, err
		}
	}
	if !counts {
		return best, nil
	}
	t := best
	t.newFirst = true
	return best, scout(t)
}

// portions are the numbers of attempts at one account that may be best: no end,
// as many as are free, and a few more or less. In a whole network there are
// enough addresses, and the portion makes no difference.
func (c *campaign) portions(free int64) []int64 {
	all := []int64{0, max(1, free)}
	for n := max(1, free-6); n <= free+6 && c.scenario.network == 0; n++ {
		if n != free {
			all = append(all, n)
		}
	}
	return all
}

// countsIdentities reports that p bounds how many different ones of its
// identities the guesser uses.
func countsIdentities(p guard.Policy, s scenario) bool {
	for _, r := range p.Rules {
		if distinct(r) && s.level(r.Members) == itself && r.Effect != guard.Observe {
			return true
		}
	}
	return false
}
