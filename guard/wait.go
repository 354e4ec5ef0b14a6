package guard

import (
	"context"
	"time"

	"authguard/limiter"
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
	expected := g.expects(p)
	ok, err := g.take(ctx, p)
	if ok || err != nil {
		return ok, err
	}
	refusal := p.lacks()
	switch {
	case refusal == nil:
		return false, nil
	case !expected && !g.unsettled.any(slotOf(refusal.Key), g.now()):
		if !g.unsettled.fresh(refusal, g.now()) || !sleep(ctx, elsewhere) {
			return false, nil
		}
		return g.take(ctx, p)
	}
	timeout := time.NewTimer(maxWait)
	defer timeout.Stop()
	for ; refusal != nil; refusal = p.lacks() {
		if s := slotOf(refusal.Key); g.unsettled.any(s, g.now()) {
			if !g.unsettled.wait(ctx, s, g.now, timeout.C) {
				return false, nil
			}
		} else if !expected {
			return false, nil // nobody has settled since it was asked
		}
		expected = g.expects(p)
		if ok, err = g.take(ctx, p); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// findSlots notes whose charges by this pass may be given back by a success.
func (p *Pass) findSlots() {
	kinds := uint64(0)
	for i, l := range p.limits {
		if r := p.rule(i); r.Counts == Failures && r.Effect == Deny && kinds&(1<<l.kind) == 0 && p.inSlots < len(p.slots) {
			kinds |= 1 << l.kind
			p.slots[p.inSlots] = slotOf(p.charges[i].Key)
			p.inSlots++
		}
	}
}

// begin counts p among the passes that are not settled.
func (g *Guard) begin(p *Pass) {
	p.checked = g.now() // it may have waited
	for _, s := range p.slots[:p.inSlots] {
		g.unsettled.change(s, spanOf(p.checked), 1)
	}
}

// end takes it out again.
func (g *Guard) end(p *Pass, gaveBack bool) {
	for _, s := range p.slots[:p.inSlots] {
		g.unsettled.settle(s, spanOf(p.checked), gaveBack)
	}
}

// expects reports that this process may give something back to a subject of p.
func (g *Guard) expects(p *Pass) bool {
	for _, s := range p.slots[:p.inSlots] {
		if g.unsettled.any(s, p.checked) {
			return true
		}
	}
	return false
}

// lacks is what refuses p, if each rule that does counts failures, which others may
// turn out not to be, or nil. What is decided without the store is decided at once.
func (p *Pass) lacks() (refusal *limiter.Charge) {
	if p.degraded {
		return nil
	}
	for i := range p.charges {
		c := &p.charges[i]
		if c.Advisory > 0 || c.Decision.Allowed {
			continue
		}
		if p.rule(i).Counts != Failures || c.Decision.Locked {
			return nil
		}
		if refusal == nil {
			refusal = c
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
