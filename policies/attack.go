package policies

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// attack is one run: a guesser with one tactic, in virtual time.
type attack struct {
	policy guard.Policy // the rules of the guesser's class of clients
	rules  map[string]guard.Rule
	scenario
	tactic
	budget int

	guard *guard.Guard
	store *memstore.Store
	parts map[string]string
	loot        // nothing unless the scenario has a stolen cookie
	now   int64 // the clock of guard and store, in microseconds since 1970

	lanes   []*lane
	names   int   // identities invented so far
	blocked int64 // until when everybody waits
	noNew   int64 // until when no new identity is admitted
	tried   int64 // attempts at the one account since it was last left alone
	ownerAt int64 // when the owner comes next

	asked    bool    // for a challenge, or would have been
	admitted []int64 // when attempts got through
	ran      int64   // how long the attack was run
	lockedAt int     // attempts that got through before the first lock
}

func newAttack(c *campaign, t tactic, budget int) (*attack, error) {
	p, s := c.policy, c.scenario
	a := &attack{
		policy: p, scenario: s, tactic: t, budget: budget,
		rules: make(map[string]guard.Rule), parts: make(map[string]string),
		now: t.start, ownerAt: never,
	}
	for _, r := range p.Rules {
		a.rules[r.Name] = r
		for _, by := range []guard.By{r.By, r.Members} {
			if name, ok := strings.CutPrefix(string(by), "part:"); ok {
				a.parts[name] = "x"
			}
		}
	}
	clock := func() time.Time { return time.UnixMicro(a.now) }
	a.store = memstore.New(memstore.Config{Now: clock, MaxBytes: 1 << 30})
	var err error
	a.guard, err = guard.New(guard.Config{
		Store:  struct{ limiter.Store }{a.store}, // nobody will ask it for a list of the refused
		Secret: []byte(strings.Repeat("explain ", 4)), Policies: []guard.Policy{c.whole}, Opaque: true, Resolve: resolve, Now: clock,
		Challenger: solver{},
	})
	if err != nil {
		return nil, err
	}
	if s.owner {
		a.ownerAt = t.start + (12 * time.Hour).Microseconds()
	}
	a.lanes = []*lane{{}}
	if !s.varies() {
		a.lanes[0].known = identities{{used: true}}
	}
	if s.stolen {
		err = a.steal()
	}
	return a, err
}

// run attempts whenever admitted, until the attack has lasted its life or, when
// it has gone through all that the policy remembers, had its number of attempts.
func (a *attack) run(ctx context.Context) error {
	end := a.start + a.life.Microseconds()
	enough := a.start + min(a.life, memory(a.policy, a.scenario)).Microseconds()
	for calls := 0; len(a.admitted) < a.budget || a.now <= enough; calls++ {
		if calls%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if len(a.admitted) >= maxAttempts || calls > 10*maxAttempts {
			break
		}
		l, at := a.next()
		if min(at, a.ownerAt) >= end {
			a.now = end
			break
		}
		var err error
		if a.ownerAt <= at { // the first at an instant
			a.now = a.ownerAt
			err = a.ownerComes(ctx)
		} else {
			a.now = at
			err = a.try(ctx, l)
		}
		if err != nil {
			return err
		}
	}
	a.ran = a.now - a.start
	if n := a.store.Stats().Evicted; n > 0 {
		return fmt.Errorf("the store of the attack dropped %d keys", n)
	}
	return nil
}

// next is the lane that can go on first, and when.
func (a *attack) next() (*lane, int64) {
	soonest := max(a.now, a.blocked)
	var best *lane
	at := int64(never)
	for _, l := range a.lanes {
		t := int64(never)
		if a.varies() {
			t = max(l.noNew, a.noNew)
		}
		if len(l.known) > 0 {
			t = min(t, l.known[0].ready)
		}
		if t = max(t, l.blocked, soonest); t < at {
			best, at = l, t
		}
	}
	if at > soonest && a.network > 0 && a.noNew <= soonest && len(a.lanes) < 1<<16 {
		best, at = &lane{number: len(a.lanes)}, soonest
		a.lanes = append(a.lanes, best)
	}
	if a.stolen && at >= a.worthless {
		return nil, never
	}
	return best, at
}

// choose takes an identity of l to attempt with.
func (a *attack) choose(l *lane) *identity {
	known := len(l.known) > 0 && l.known[0].ready <= a.now
	fresh := a.varies() && max(l.noNew, a.noNew) <= a.now
	if known && !(fresh && a.newFirst) {
		return heap.Pop(&l.known).(*identity)
	}
	a.names++
	return &identity{number: a.names}
}

// try attempts once, and takes note of the answer.
func (a *attack) try(ctx context.Context, l *lane) error {
	who := a.choose(l)
	denying, err := a.ask(ctx, a.attempt(l, who))
	if err != nil {
		return err
	}
	if len(denying) > 0 {
		return a.denied(l, who, denying)
	}
	a.admitted = append(a.admitted, a.now)
	who.used, who.ready = true, a.now
	if a.manyAccounts {
		if who.tried++; who.tried == a.pauseAfter {
			return nil // never again: there are other accounts
		}
	} else if a.tried++; a.tried == a.pauseAfter {
		a.tried, a.blocked = 0, a.now+a.pause.Microseconds()
	}
	heap.Push(&l.known, who)
	return nil
}

// ask attempts, and tells which limits deny. Where denials are silent, it looks
// before it attempts: a guesser who knows the rules wastes nothing.
func (a *attack) ask(ctx context.Context, attempt guard.Attempt) ([]guard.Status, error) {
	if a.hasSilent() {
		limits, err := a.guard.Inspect(ctx, attempt)
		if denying := a.denyingOf(limits); err != nil || len(denying) > 0 {
			return denying, err
		}
	}
	pass, err := a.check(ctx, attempt, a.solves)
	if denied := (*guard.Denied)(nil); errors.As(err, &denied) {
		return a.denyingOf(denied.Limits()), nil
	}
	if err != nil {
		return nil, err
	}
	return nil, pass.Fail(ctx)
}

func (a *attack) hasSilent() bool {
	for _, r := range a.policy.Rules {
		if r.Effect == guard.Silent {
			return true
		}
	}
	return false
}

// denyingOf are the limits that deny the guesser, and not clients of the other class.
func (a *attack) denyingOf(limits []guard.Status) []guard.Status {
	var denying []guard.Status
	for _, s := range limits {
		if _, mine := a.rules[s.Rule]; mine && !s.Decision.Allowed && s.Effect != guard.Observe {
			denying = append(denying, s)
		}
	}
	return denying
}
