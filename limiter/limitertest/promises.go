package limitertest

import (
	"errors"
	"math"
	"slices"
	"time"

	"authguard/limiter"
)

// checkRemaining checks that an ask of cost 0 is free and tells exactly what
// would be admitted.
func (h *history) checkRemaining(state []byte, now int64) int64 {
	d, _, wrote := h.take(state, now, 0)
	switch left := d.Remaining; {
	case !d.Allowed:
		h.fail("an ask of cost 0 was denied")
	case wrote:
		h.fail("an ask of cost 0 wrote a state")
	case left > 0 && !h.allows(state, now, left):
		h.fail("%d remain, but an ask of %d is denied", left, left)
	case left < h.most && h.allows(state, now, left+1):
		h.fail("%d remain, but an ask of %d is admitted", left, left+1)
	}
	return d.Remaining
}

// checkAdmission checks what the state says after an admission. Where a larger
// capacity has charged more than the present one holds, an ask may be admitted
// by what the present one would have given back, and cost all that is owed.
func (h *history) checkAdmission(d limiter.Decision, next []byte, left, cost int64) {
	if d.Remaining > left-cost || d.Remaining < left-cost && !h.mixed {
		h.fail("%d of %d remaining were admitted, but Remaining is %d", cost, left, d.Remaining)
	}
	after, _, _ := h.take(next, h.now, 0)
	after.Delay = d.Delay // each ask has its own place in a queue
	if after != d {
		h.fail("the admission said %s, but its state says %s", tell(d), tell(after))
	}
}

// checkDenial checks promises 2 and 3.
func (h *history) checkDenial(d limiter.Decision, next []byte, wrote bool, left, cost int64) {
	if d.Remaining != left {
		h.fail("%d remained, but the denial says %d", left, d.Remaining)
	}
	if wrote {
		h.checkMended(next, cost)
	}
	retry := d.RetryAfter.Microseconds()
	if !h.allows(next, h.now+retry, cost) {
		h.fail("promise 3: an ask of %d is still denied after its RetryAfter, %v", cost, d.RetryAfter)
	}
	if h.allows(next, h.now+retry-1, cost) {
		h.fail("promise 3: an ask of %d is admitted 1µs before its RetryAfter, %v", cost, d.RetryAfter)
	}
	halfway := h.rnd.Int64N(retry)
	if again, _, _ := h.take(next, h.now+halfway, cost); again.RetryAfter.Microseconds() != retry-halfway {
		h.fail("promise 3: told to wait %v, and after %v of it %v", d.RetryAfter, micros(halfway), again.RetryAfter)
	}
	h.checkWholeSeconds(d, next, cost)
}

// checkWholeSeconds checks the promise as an HTTP header tells it, rounded up:
// so long is enough, and one second less is not.
func (h *history) checkWholeSeconds(d limiter.Decision, state []byte, cost int64) {
	told := (d.RetryAfter + time.Second - 1).Truncate(time.Second)
	if !h.allows(state, h.now+told.Microseconds(), cost) {
		h.fail("promise 3: an ask of %d is denied after %v, which is %v in whole seconds", cost, told, d.RetryAfter)
	}
	if h.allows(state, h.now+(told-time.Second).Microseconds(), cost) {
		h.fail("promise 3: told to wait %v, an ask of %d is admitted after %v", told, cost, told-time.Second)
	}
}

// checkMended checks the one state that a denial may write: the old one with
// instants of the future pulled to the present, which decides alike.
func (h *history) checkMended(mended []byte, cost int64) {
	if h.now >= h.latest {
		h.fail("promise 2: a denial wrote %x over %x, and the clock had not been set back", mended, h.state)
	}
	h.checkSame("promise 2: mending the state", mended, h.state, h.now)
	if _, _, again := h.take(mended, h.now, cost); again {
		h.fail("promise 2: the mended state was mended once more")
	}
}

// checkWaitingNeverHurts checks promise 4: with no other traffic, what is left
// only grows.
func (h *history) checkWaitingNeverHurts() {
	at := []int64{h.now, h.now + 1, h.now + h.pause(), h.now + h.pause(), h.now + h.rnd.Int64N(h.life.Microseconds()+1), h.now + 2*h.life.Microseconds()}
	slices.Sort(at)
	var before int64
	for i, now := range at {
		left := h.remaining(h.state, now)
		if left < before {
			h.fail("promise 4: %d remain after %v, but %d after %v", before, micros(at[i-1]-h.now), left, micros(now-h.now))
		}
		before = left
	}
}

// checkReset checks promise 5: from ResetAfter on, the state and no state at
// all decide alike.
func (h *history) checkReset(d limiter.Decision) {
	reset := h.now + d.ResetAfter.Microseconds()
	for _, now := range []int64{reset, reset + h.pick(1, h.rnd.Int64N(2*h.life.Microseconds()))} {
		h.checkSame("promise 5: ResetAfter", h.state, nil, now)
	}
}

// checkSame checks that two states decide alike at now, for every cost.
func (h *history) checkSame(why string, a, b []byte, now int64) {
	for _, cost := range h.costs(h.remaining(a, now)) {
		one, _, _ := h.take(a, now, cost)
		other, _, _ := h.take(b, now, cost)
		if one != other {
			h.fail("%s: cost %d at %v: %s, want %s\nstates %x and %x", why, cost, h.clock(now), tell(one), tell(other), a, b)
		}
	}
}

// costs are all from 0 to the limit, or of a large limit those that matter.
func (h *history) costs(left int64) []int64 {
	var costs []int64
	if h.most <= 8 {
		for cost := range h.most + 1 {
			costs = append(costs, cost)
		}
		return costs
	}
	for _, cost := range []int64{0, 1, 2, left - 1, left, left + 1, h.most - 1, h.most, h.rnd.Int64N(h.most), h.rnd.Int64N(h.most)} {
		if cost >= 0 && cost <= h.most {
			costs = append(costs, cost)
		}
	}
	return costs
}

// checkRefused checks promise 7, and that whatever else cannot be is an error
// that leaves nothing behind.
func (h *history) checkRefused() {
	for _, cost := range []int64{h.most + 1, 2 * h.most, math.MaxInt32 + 1, math.MaxInt64} {
		if err := h.refused(h.now, cost); !errors.Is(err, limiter.ErrCostTooHigh) {
			h.fail("promise 7: cost %d: %v, want ErrCostTooHigh", cost, err)
		}
	}
	for _, cost := range []int64{-1, math.MinInt32, math.MinInt64} {
		if err := h.refused(h.now, cost); errors.Is(err, limiter.ErrCostTooHigh) {
			h.fail("cost %d: %v, want an error of its own", cost, err)
		}
	}
	for _, now := range []int64{-1, math.MinInt64, 1 << 53, math.MaxInt64} {
		h.refused(now, 1)
	}
}

// refused is the error of an ask that must have one.
func (h *history) refused(now, cost int64) error {
	d, out, err := h.ask(h.state, now, cost)
	if err == nil || string(out) != prefix || d.Allowed {
		h.fail("take %d at %d µs: Allowed %v, error %v, dst %q, want an error and nothing else", cost, now, d.Allowed, err, out)
	}
	out, refundErr := h.limit.Refund([]byte(prefix), h.state, now, now, limiter.Ask{Cost: cost})
	if refundErr == nil || string(out) != prefix {
		h.fail("refund %d at %d µs: error %v, dst %q, want an error and nothing else", cost, now, refundErr, out)
	}
	return err
}
