package guard

import (
	"context"
	"slices"
	"time"
)

// Several right passwords at one instant must all get in, although their charges
// stand until each is found right. So an attempt that is refused only because of
// charges that may still be given back waits until one of them is settled.

// elsewhere is how long an attempt waits once for charges of other processes, of
// which this one does not know.
const elsewhere = 250 * time.Millisecond

// takeInTurn charges a pass, after waiting where that may help.
func (g *Guard) takeInTurn(ctx context.Context, p *Pass) (bool, error) {
	p.findSlots()
	u, began := &g.unsettled, time.Time{}
	for {
		var gaveBack [len(p.slots)]uint32
		for i, s := range p.slots[:p.inSlots] {
			gaveBack[i] = u.slots[s].gaveBack.Load()
		}
		ok, err := g.ask(ctx, p)
		if ok || err != nil {
			return ok, err
		}
		lacking := p.lacks()
		i := p.slotIndex(lacking)
		if i < 0 {
			return false, nil
		}
		if began.IsZero() {
			began = time.Now()
		}
		s := p.slots[i]
		more := func() bool { return u.slots[s].gaveBack.Load() != gaveBack[i] } // since it was asked
		// Of those about whom the store is being asked at this moment some may hold
		// what p lacks. They are all answered soon; who comes later holds nothing.
		for asked := u.slots[s].asked.Load(); !more() && !u.any(s, g.now()) && int32(asked-u.slots[s].answered.Load()) > 0 && time.Since(began) < maxWait; {
			if !sleep(ctx, time.Millisecond) {
				return false, nil
			}
		}
		switch left := maxWait - time.Since(began); {
		case more() && left > 0:
		case u.any(s, g.now()) && left > 0:
			if !u.wait(ctx, s, more, g.now, left) {
				return false, nil
			}
			if !more() { // all have failed, or others were sooner
				if !u.any(s, g.now()) {
					return false, nil
				}
			}
		case u.fresh(&p.charges[lacking], g.now()) && u.all.Load() < maxWaitingAll:
			u.all.Add(1)
			lasted := sleep(ctx, elsewhere)
			u.all.Add(-1)
			if !lasted {
				return false, nil
			}
			return g.ask(ctx, p)
		default:
			return false, nil
		}
	}
}

// ask charges a pass and, if it is admitted, counts it among those that are not
// settled, before anybody can believe that it is not there.
func (g *Guard) ask(ctx context.Context, p *Pass) (bool, error) {
	for _, s := range p.slots[:p.inSlots] {
		g.unsettled.slots[s].asked.Add(1)
	}
	ok, err := g.take(ctx, p)
	if ok {
		p.checked = g.now() // it may have waited
	}
	for _, s := range p.slots[:p.inSlots] {
		if ok {
			g.unsettled.change(s, spanOf(p.checked), 1)
		}
		g.unsettled.slots[s].answered.Add(1)
	}
	return ok, err
}

// findSlots notes whose charges by this pass may be given back by a success.
func (p *Pass) findSlots() {
	for i := range p.limits {
		if p.limits[i].waited {
			p.slots[p.inSlots] = slotOf(p.charges[i].Key)
			p.inSlots++
		}
	}
}

// end takes a pass out of those that are not settled.
func (g *Guard) end(p *Pass, gaveBack bool) {
	for _, s := range p.slots[:p.inSlots] {
		g.unsettled.settle(s, spanOf(p.checked), gaveBack)
	}
}

// slotIndex is where the subject of charge i is among p's slots, or -1.
func (p *Pass) slotIndex(i int) int {
	if i < 0 {
		return -1
	}
	return slices.Index(p.slots[:p.inSlots], slotOf(p.charges[p.present(i)].Key))
}

// lacks is the charge that refuses p, if each rule that does counts failures, which
// others may turn out not to be, or -1. What is decided without the store is decided
// at once.
func (p *Pass) lacks() int {
	if p.degraded {
		return -1
	}
	refusal := -1
	for i := range p.charges {
		c := &p.charges[i]
		if c.Advisory > 0 || c.Decision.Allowed {
			continue
		}
		if r := p.rule(i); r.Counts != Failures || c.Decision.Locked || r.asksAll() {
			return -1
		}
		if refusal < 0 {
			refusal = i
		}
	}
	return refusal
}

// sleep waits for d, and reports false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
