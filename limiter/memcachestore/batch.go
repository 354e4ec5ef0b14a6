package memcachestore

import (
	"context"
	"errors"
	"sync"
	"time"

	"authguard/limiter"
)

// A batch is what Take and Peek decide.
type batch struct {
	store   *Store
	charges []limiter.Charge
	keys    []string // as Memcached takes them
	held    []entry  // as last read or written
	next    [][]byte // the states after the charges; empty: as it stands
}

func (s *Store) batch(charges []limiter.Charge) *batch {
	b := &batch{store: s, charges: charges, keys: make([]string, len(charges)), held: make([]entry, len(charges)), next: make([][]byte, len(charges))}
	for i := range charges {
		b.keys[i] = legal(charges[i].Key)
	}
	return b
}

// read reads the keys of some charges.
func (b *batch) read(ctx context.Context, charges ...int) error {
	keys := make([]string, len(charges))
	for n, i := range charges {
		keys[n] = b.keys[i]
	}
	items, err := b.store.fetch(ctx, keys)
	if err != nil {
		return err
	}
	for _, i := range charges {
		b.held[i] = read(items[b.keys[i]])
	}
	return nil
}

// those are the charges that pass.
func (b *batch) those(pass func(*limiter.Charge) bool) []int {
	var found []int
	for i := range b.charges {
		if pass(&b.charges[i]) {
			found = append(found, i)
		}
	}
	return found
}

func all(*limiter.Charge) bool { return true }

// take charges those that vote, one after the other, and then the advisory groups.
// If it does not return true, the charges that are Taken must be given back.
func (b *batch) take(c *call) (bool, error) {
	if err := b.read(c.work, b.those(all)...); err != nil {
		return false, err
	}
	now := b.store.instant(c.work, b.held...)
	votes := true
	for i := range b.charges {
		if err := b.decide(i, now); err != nil {
			b.poison(c, i)
			return false, err
		}
		votes = votes && (b.charges[i].Advisory != 0 || b.charges[i].Decision.Allowed)
	}
	for i := range b.charges {
		if !b.charges[i].Decision.Allowed {
			b.mend(c, i)
		}
	}
	if !votes {
		return false, nil
	}
	for i := range b.charges {
		if b.charges[i].Advisory != 0 {
			continue
		}
		if ok, err := b.charge(c, i); !ok {
			return false, err
		}
	}
	done := map[int]bool{0: true}
	for i := range b.charges {
		if group := b.charges[i].Advisory; !done[group] {
			done[group] = true
			if err := b.chargeGroup(c, group); err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// chargeGroup charges an advisory group as a whole, or not at all.
func (b *batch) chargeGroup(c *call, group int) error {
	ours := func(charge *limiter.Charge) bool { return charge.Advisory == group }
	members := b.those(ours)
	allowed := true
	for _, i := range members {
		allowed = allowed && b.charges[i].Decision.Allowed
	}
	for _, i := range members {
		if !allowed {
			break
		}
		var err error
		if allowed, err = b.charge(c, i); err != nil {
			return err
		}
	}
	if allowed {
		return nil
	}
	_ = b.giveBack(c.back, ours) // what cannot be given back stays charged
	for _, i := range members {
		b.asThingsAre(i)
	}
	return nil
}

// decide asks the law about charge i.
func (b *batch) decide(i int, now int64) error {
	charge := &b.charges[i]
	if b.held[i].alien {
		return &limiter.ChargeError{Index: i, Err: limiter.ErrState}
	}
	var err error
	b.next[i], err = charge.Limit.Take(&charge.Decision, nil, b.held[i].state, now, charge.Ask)
	if err != nil && (charge.Advisory == 0 || !errors.Is(err, limiter.ErrCostTooHigh)) {
		return &limiter.ChargeError{Index: i, Err: err}
	}
	return nil
}

// asThingsAre tells what is left of a limit that admits and yet was not charged.
func (b *batch) asThingsAre(i int) {
	charge := &b.charges[i]
	if charge.Taken || !charge.Decision.Allowed {
		return
	}
	d, _, err := limiter.Decide(charge.Limit, nil, b.held[i].state, charge.Decision.At, limiter.Ask{Member: charge.Member})
	if err == nil { // the law has read this state a moment ago
		charge.Decision.Remaining, charge.Decision.ResetAfter = d.Remaining, d.ResetAfter
	}
}

// giveBack refunds those of the charges that are Taken, all at one time, since there
// may be little left of it. It reports the first error.
func (b *batch) giveBack(ctx context.Context, these func(*limiter.Charge) bool) error {
	taken := b.those(func(charge *limiter.Charge) bool { return charge.Taken && these(charge) })
	for _, i := range taken {
		b.charges[i].Taken = false // whatever comes of it: a refund is made once
		if b.charges[i].Limit == nil {
			return &limiter.ChargeError{Index: i, Err: errors.New("memcachestore: charge has no Limit")}
		}
	}
	if err := b.read(ctx, taken...); err != nil {
		return err
	}
	var wg sync.WaitGroup
	failed := make([]error, len(taken))
	for n, i := range taken {
		wg.Go(func() { failed[n] = b.refund(ctx, i) })
	}
	wg.Wait()
	for _, err := range failed {
		if err != nil {
			return err
		}
	}
	return nil
}

// mend writes what a denying limit made of a state from the future, if nobody else
// writes meanwhile.
func (b *batch) mend(c *call, i int) {
	if d := &b.charges[i].Decision; len(b.next[i]) > 0 {
		held := &b.held[i]
		_ = b.store.write(c.work, held, held.next(b.keys[i], b.next[i], d.At, d.ResetAfter+b.store.slack, time.Now()))
	}
}

// poison sees to it that what is not ours under key i goes away within the hour.
func (b *batch) poison(c *call, i int) {
	if held := &b.held[i]; held.alien && held.item.Flags != flagPoison {
		_ = b.store.write(c.work, held, held.poison(b.keys[i]))
	}
}
