package limitertest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

const (
	rescaleSeeds = 3
	rescaleSteps = 150
)

// Rescale checks promise 8 for one law with two sets of numbers: a key that has
// lived under the old ones is asked under old and new in turns, as in a rolling
// deploy, and then under the new ones alone. Under whichever numbers are in
// use, all promises of an ask hold on the state that the others left: the wait
// is exact, and no longer than the longest one of a key that knew no others. And
// where the new numbers are stricter, the change sets nobody free.
//
// The bounds must hold for the admissions under both numbers together; usually
// that is the looser formula of the two. Let old and new differ in one number,
// and the windows of laws that follow the clock be multiples of one another:
// else no bound of the two is one of the mixture.
func Rescale(t *testing.T, old, new limiter.Limit, bounds ...Bound) {
	t.Helper()
	require.Equal(t, old.Law(), new.Law(), "numbers of one law")
	require.NotEqual(t, old, new, "different numbers")
	var seen seen
	denials := map[limiter.Limit]int{}
	for _, seed := range seeds(rescaleSeeds) {
		h := newHistory(t, seed, &seen, bounds)
		h.use(old)
		h.reset, h.mixed = limiter.MaxWindow, true
		for step := range rescaleSteps {
			switch {
			case step < rescaleSteps/5: // old alone
			case step < rescaleSteps*4/5:
				if h.rnd.IntN(3) == 0 {
					h.change(old, new)
				}
			case h.limit == old:
				h.change(old, new)
			}
			if h.rnd.IntN(2) == 0 {
				h.move(h.now + h.pause())
			}
			before := seen.denials
			h.takeOne()
			denials[h.limit] += seen.denials - before
			if h.rnd.IntN(8) == 0 {
				h.refundOne()
			}
		}
	}
	require.NotZerof(t, denials[old], "%v denied nothing: the histories show nothing", old)
	require.NotZerof(t, denials[new], "%v denied nothing: the histories show nothing", new)
	require.NotZero(t, seen.refunds, "nothing was refunded: the histories show nothing")
}

// change goes over to the other numbers. Receipts of before are not refunded
// any more: the other numbers may have dropped their charge already.
func (h *history) change(old, new limiter.Limit) {
	from := numbers{h.limit, h.most, h.life.Microseconds()}
	before := h.remaining(h.state, h.now)
	if h.limit == old {
		h.use(new)
	} else {
		h.use(old)
	}
	h.reset = limiter.MaxWindow // what the other numbers charged may take as long
	to := numbers{h.limit, h.most, h.life.Microseconds()}
	after := h.remaining(h.state, h.now)
	h.note("from %v to %v: remaining %d, then %d", from.limit, to.limit, before, after)
	h.receipts = h.receipts[:0]
	grown := max(0, to.most-from.most)
	if _, exact := to.limit.(limiter.ExactRefunder); !exact {
		grown++ // what had come of a unit is not told as the other numbers would
	}
	if to.stricter(from) && after > before+grown {
		h.fail("promise 8: the change from %v to %v raised Remaining from %d to %d", from.limit, to.limit, before, after)
	}
}

type numbers struct {
	limit limiter.Limit
	most  int64
	life  int64 // the longest of a key
}

// stricter says that going over from others must not set free more than the
// limit grows by: what they counted lives at least as long. A law that gives
// back evenly, and so cannot refund exactly, must not do it faster, either.
func (n numbers) stricter(others numbers) bool {
	if n.life < others.life {
		return false
	}
	_, exact := n.limit.(limiter.ExactRefunder)
	return exact || float64(n.most)/float64(n.life) <= float64(others.most)/float64(others.life)
}
