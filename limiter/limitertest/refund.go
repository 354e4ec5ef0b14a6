package limitertest

import "authguard/limiter"

// refundOne gives an earlier receipt back, once, and checks promise 6 where it
// stands: never more than the charge comes back, and nobody else's.
func (h *history) refundOne() {
	if len(h.receipts) == 0 {
		return
	}
	i := h.rnd.IntN(len(h.receipts))
	if h.rnd.IntN(3) > 0 {
		i = len(h.receipts) - 1 // most refunds are of what was charged just now
	}
	r := h.receipts[i]
	h.receipts = append(h.receipts[:i], h.receipts[i+1:]...)

	before := h.remaining(h.state, h.now)
	next := h.refund(h.state, h.now, r.at, r.cost)
	after := h.checkRemaining(next, h.now)
	h.note("refund %d of %v → remaining %d", r.cost, h.clock(r.at), after)
	h.seen.refunds++

	_, exact := h.limit.(limiter.ExactRefunder)
	switch whole := min(h.most, before+r.cost); {
	case after < before:
		h.fail("promise 6: a refund of %d left %d of %d remaining", r.cost, after, before)
	case after > whole:
		h.fail("promise 6: a refund of %d raised Remaining from %d to %d", r.cost, before, after)
	case !exact && !h.mixed && after != whole:
		h.fail("promise 6: a refund of %d raised Remaining from %d to %d, want %d", r.cost, before, after, whole)
	case exact && h.now >= r.gone:
		h.checkSame("promise 6: a refund of what has aged out", next, h.state, h.now)
	}
	h.giveBack(r, exact)
	h.state, h.latest = next, max(h.latest, h.now)
	if len(next) == 0 {
		h.latest = 0
	}
}

// checkRefundUndoes is promise 6 as two histories that begin here: in one a
// charge is made and later refunded, in the other it never was. They must
// decide alike from then on, for every cost.
//
// Between the charge and its refund both see the same further asks. Where one
// of them is answered differently, that answer depended on the charge, and the
// histories are rightly different. Laws whose refund is capped make the promise
// only for a refund on the spot.
func (h *history) checkRefundUndoes() {
	left := h.remaining(h.state, h.now)
	if left == 0 || h.now < h.latest {
		return
	}
	var (
		now        = h.now
		cost       = min(left, h.pick(1, 1, left, 1+h.rnd.Int64N(left)))
		d, with, _ = h.take(h.state, now, cost)
		without    = h.state
		_, exact   = h.limit.(limiter.ExactRefunder)
		between    = 0
		aLittle    = func() int64 { return h.pick(0, 1, h.pause(), h.pause()) }
		inBoth     = func(cost int64) (limiter.Decision, limiter.Decision) {
			var a, b limiter.Decision
			a, with, _ = h.take(with, now, cost)
			b, without, _ = h.take(without, now, cost)
			return a, b
		}
	)
	if exact {
		between = h.rnd.IntN(4)
	}
	for range between {
		now += aLittle()
		if a, b := inBoth(h.pick(1, 1, 2, h.most)%h.most + 1); a.Allowed != b.Allowed {
			return
		}
	}
	if exact {
		now += aLittle()
	}
	with = h.refund(with, now, d.At, cost)
	for _, later := range []int64{0, 1, h.pause(), h.life.Microseconds() / 3, h.life.Microseconds() - 1} {
		h.checkSame("promise 6: after a charge and its refund, and without either", with, without, now+later)
	}
	h.seen.undone++
}
