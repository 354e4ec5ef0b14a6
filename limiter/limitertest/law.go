package limitertest

import (
	"testing"
	"time"

	"authguard/limiter"
)

const (
	lawSeeds = 3
	lawSteps = 150
)

// Law checks the promises written at [limiter.Limit] over random histories of
// one key: asks and refunds of many costs, pauses that end at, just before and
// just after the instants that a decision names, and a clock that is set back
// and forward at times. It fails, too, when the histories held no denial, no
// admission, no refund or no step of the clock, for then they showed nothing.
//
// The bounds say what the law's formula permits (promise 9); all of them must
// hold. Without one, only a single instant is bounded, by Decision.Limit.
func Law(t *testing.T, limit limiter.Limit, bounds ...Bound) {
	t.Helper()
	var seen seen
	for _, seed := range seeds(lawSeeds) {
		h := newHistory(t, seed, &seen, bounds)
		h.use(limit)
		h.checkRefused()
		for range lawSteps {
			h.passTime()
			if h.rnd.IntN(100) < 75 {
				h.takeOne()
			} else {
				h.refundOne()
			}
			h.checkRefundUndoes()
		}
		h.checkRefused()
		h.checkGarbage()
	}
	seen.require(t, limit)
}

// passTime moves the clock, or leaves it where it is for a burst.
func (h *history) passTime() {
	switch p := h.rnd.IntN(100); {
	case p < 50:
		h.move(h.now + h.pause())
	case p < 54:
		h.seen.forward++
		h.move(h.now + h.pick(10_000_000_000, h.life.Microseconds(), 3*h.life.Microseconds()+1))
	case p < 59:
		h.seen.back++
		h.stepBack(h.pick(1, 1_000+h.rnd.Int64N(49_000), 11_000_000, h.life.Microseconds()/3, h.life.Microseconds()))
	}
}

// pause is a wait that ends where laws go wrong: at the instants that the last
// decision named, at the edges of windows, and one microsecond beside them.
func (h *history) pause() int64 {
	life := h.life.Microseconds()
	edge := h.pick(life, max(1, life/2)) // of the clock's windows, for laws whose counts live one or two of them
	return max(0, h.pick(
		0, 1,
		h.last.RetryAfter.Microseconds(),
		h.last.ResetAfter.Microseconds(),
		edge-h.now%edge,
		life, life/2, life/h.most,
		h.rnd.Int64N(life+1),
		h.rnd.Int64N(3*life/h.most+1),
		h.rnd.Int64N(life/10+1),
	)+h.pick(0, 0, 0, -1, 1))
}

// stepBack sets the clock back. What was counted still counts, so that nobody
// has more left than before.
func (h *history) stepBack(by int64) {
	before := h.remaining(h.state, h.now)
	h.move(max(0, h.now-by))
	if after := h.remaining(h.state, h.now); after > before {
		h.fail("setting the clock back by %v raised Remaining from %d to %d", micros(by), before, after)
	}
}

// takeOne is one ask, with every promise that can be checked where it stands.
func (h *history) takeOne() {
	left := h.checkRemaining(h.state, h.now)
	h.checkWaitingNeverHurts()
	cost := h.cost(left)
	d, next, wrote := h.take(h.state, h.now, cost)
	h.note("take %d → %s", cost, tell(d))
	if d.Allowed != (cost <= left) {
		h.fail("promise 4: cost %d with %d remaining: Allowed is %v", cost, left, d.Allowed)
	}
	h.last = d
	if d.Allowed {
		h.seen.admissions++
		h.checkAdmission(d, next, left, cost)
		h.admit(cost)
		h.receipts = append(h.receipts, receipt{at: d.At, cost: cost, gone: d.At + d.ResetAfter.Microseconds(), era: h.era, entry: len(h.ledger) - 1})
	} else {
		h.seen.denials++
		h.checkDenial(d, next, wrote, left, cost)
	}
	if d.Allowed || wrote {
		h.state, h.latest = next, h.now
	}
	if h.now >= h.latest {
		h.checkReset(d)
	}
}

// cost is what to ask for when so much is left: often one, often just enough
// and just too much.
func (h *history) cost(left int64) int64 {
	return min(h.most, max(1, h.pick(
		1, 1, 1, 2,
		left, left+1, h.most,
		1+h.rnd.Int64N(h.most),
		1+h.rnd.Int64N(min(h.most, 5)),
	)))
}

// longestLife is how long a key can matter under limit: when all of it is taken
// at 1970, where every window of the clock begins.
func longestLife(limit limiter.Limit, most int64) (time.Duration, error) {
	d, _, err := limiter.Decide(limit, nil, nil, 0, limiter.Ask{Cost: most})
	return d.ResetAfter, err
}
