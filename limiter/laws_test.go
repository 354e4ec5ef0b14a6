package limiter_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
	"authguard/limiter/limitertest"
)

const day = 24 * time.Hour

// laws has each law at its extremes and at the numbers that people write.
var laws = []limiter.Limit{
	limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Second},
	limiter.TokenBucket{Capacity: 1, Refill: 1, Per: time.Millisecond},
	limiter.TokenBucket{Capacity: 1, Refill: 1, Per: 31 * day},
	limiter.TokenBucket{Capacity: 5, Refill: 5, Per: 15 * time.Minute},
	limiter.TokenBucket{Capacity: 3, Refill: 3, Per: time.Second},
	limiter.TokenBucket{Capacity: 7, Refill: 3, Per: time.Second},
	limiter.TokenBucket{Capacity: 6_000, Refill: 6_000, Per: time.Second},
	limiter.TokenBucket{Capacity: 20, Refill: 6_000, Per: time.Second},
	limiter.TokenBucket{Capacity: 1, Refill: 1_000_000, Per: time.Millisecond},
	limiter.TokenBucket{Capacity: 1_000_000, Refill: 1_000_000, Per: time.Millisecond},
	limiter.TokenBucket{Capacity: 999_983, Refill: 999_983, Per: 31 * day},
	limiter.TokenBucket{Capacity: 1_000_000, Refill: 999_983, Per: 30*day + 7*time.Microsecond},
	limiter.TokenBucket{Capacity: 2, Refill: 999_983, Per: 31 * day},

	limiter.LeakyBucket{Capacity: 10, Leak: 1, Per: time.Second},
	limiter.LeakyBucket{Capacity: 1, Leak: 1, Per: 31 * day},
	limiter.LeakyBucket{Capacity: 7, Leak: 3, Per: time.Second},
	limiter.LeakyBucket{Capacity: 1_000_000, Leak: 999_983, Per: 30 * day},

	limiter.FixedWindow{Limit: 5, Window: 15 * time.Minute},
	limiter.FixedWindow{Limit: 1, Window: time.Millisecond},
	limiter.FixedWindow{Limit: 1, Window: 31 * day},
	limiter.FixedWindow{Limit: 100, Window: time.Minute},
	limiter.FixedWindow{Limit: 6_000, Window: time.Second},
	limiter.FixedWindow{Limit: 1_000_000, Window: time.Millisecond},
	limiter.FixedWindow{Limit: 999_983, Window: 31 * day},
	limiter.FixedWindow{Limit: 4, Window: 1_234_567 * time.Microsecond},

	limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute},
	limiter.SlidingWindow{Limit: 1, Window: time.Millisecond},
	limiter.SlidingWindow{Limit: 1, Window: 31 * day},
	limiter.SlidingWindow{Limit: 3, Window: time.Second},
	limiter.SlidingWindow{Limit: 100, Window: time.Minute},
	limiter.SlidingWindow{Limit: 150, Window: time.Millisecond},
	limiter.SlidingWindow{Limit: 1_000, Window: 31 * day},
	limiter.SlidingWindow{Limit: 4, Window: 1_234_567 * time.Microsecond},

	limiter.SlidingWindowCounter{Limit: 300, Window: time.Minute},
	limiter.SlidingWindowCounter{Limit: 1, Window: time.Millisecond},
	limiter.SlidingWindowCounter{Limit: 1, Window: 31 * day / 2},
	limiter.SlidingWindowCounter{Limit: 10, Window: 10 * time.Second},
	limiter.SlidingWindowCounter{Limit: 7, Window: 1_234_567 * time.Microsecond},
	limiter.SlidingWindowCounter{Limit: 6_000, Window: time.Second},
	limiter.SlidingWindowCounter{Limit: 1_000_000, Window: time.Millisecond},
	limiter.SlidingWindowCounter{Limit: 999_983, Window: 31 * day / 2},
}

func TestLaws(t *testing.T) {
	for _, limit := range laws {
		t.Run(fmt.Sprintf("%s %v", limit.Law(), limit), func(t *testing.T) {
			limitertest.Law(t, limit, formula(limit))
		})
	}
}

// formula is what each law permits in a span, written down apart from the law.
func formula(limit limiter.Limit) limitertest.Bound {
	switch l := limit.(type) {
	case limiter.TokenBucket:
		return bucketBound(l.Capacity, l.Refill, l.Per)
	case limiter.LeakyBucket:
		return bucketBound(l.Capacity, l.Leak, l.Per)
	case limiter.FixedWindow:
		return fixedBound(l.Limit, l.Window)
	case limiter.SlidingWindow:
		return slidingBound(l.Limit, l.Window)
	case limiter.SlidingWindowCounter:
		return counterBound(l.Limit, l.Window)
	}
	panic(fmt.Sprintf("no formula for %T", limit))
}

// A bucket was full at most, and is refilled.
func bucketBound(capacity, refill int64, per time.Duration) limitertest.Bound {
	return func(from, to int64) int64 {
		gained := float64(to-from) * float64(refill) / float64(per.Microseconds())
		if gained > 1e9 {
			return math.MaxInt64
		}
		return capacity + int64(gained*(1+1e-12)+1e-9) // the float may fall short of a whole token
	}
}

// Each window of the clock that the span touches admits the limit.
func fixedBound(limit int64, window time.Duration) limitertest.Bound {
	w := window.Microseconds()
	return func(from, to int64) int64 { return limit * (to/w - from/w + 1) }
}

// The span is covered by so many windows, each of which admits the limit.
func slidingBound(limit int64, window time.Duration) limitertest.Bound {
	w := window.Microseconds()
	return func(from, to int64) int64 { return limit * ((to-from)/w + 1) }
}

// A window of the clock admits the limit, and so any span of a window twice it.
func counterBound(limit int64, window time.Duration) limitertest.Bound {
	aligned, sliding := fixedBound(limit, window), slidingBound(2*limit, window)
	return func(from, to int64) int64 { return min(aligned(from, to), sliding(from, to)) }
}

func TestRescale(t *testing.T) {
	for _, c := range []struct {
		old, new limiter.Limit
		bound    limitertest.Bound // the looser of the two
	}{
		{limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Second}, limiter.TokenBucket{Capacity: 20, Refill: 1, Per: time.Second}, bucketBound(20, 1, time.Second)},
		{limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Second}, limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Minute}, bucketBound(10, 1, time.Second)},
		{limiter.TokenBucket{Capacity: 7, Refill: 999_983, Per: 31 * day}, limiter.TokenBucket{Capacity: 7, Refill: 7, Per: 31 * day}, bucketBound(7, 999_983, 31*day)},
		{limiter.TokenBucket{Capacity: 1_000, Refill: 1_000, Per: time.Second}, limiter.TokenBucket{Capacity: 1, Refill: 1_000, Per: time.Second}, bucketBound(1_000, 1_000, time.Second)},
		{limiter.LeakyBucket{Capacity: 10, Leak: 1, Per: time.Second}, limiter.LeakyBucket{Capacity: 20, Leak: 1, Per: time.Second}, bucketBound(20, 1, time.Second)},
		{limiter.FixedWindow{Limit: 5, Window: time.Minute}, limiter.FixedWindow{Limit: 8, Window: time.Minute}, fixedBound(8, time.Minute)},
		{limiter.FixedWindow{Limit: 5, Window: time.Minute}, limiter.FixedWindow{Limit: 5, Window: time.Hour}, fixedBound(5, time.Minute)},
		{limiter.SlidingWindow{Limit: 5, Window: time.Minute}, limiter.SlidingWindow{Limit: 8, Window: time.Minute}, slidingBound(8, time.Minute)},
		{limiter.SlidingWindow{Limit: 5, Window: time.Minute}, limiter.SlidingWindow{Limit: 5, Window: time.Hour}, slidingBound(5, time.Minute)},
		{limiter.SlidingWindow{Limit: 1, Window: time.Second}, limiter.SlidingWindow{Limit: 400, Window: time.Second}, slidingBound(400, time.Second)},
		{limiter.SlidingWindowCounter{Limit: 50, Window: time.Minute}, limiter.SlidingWindowCounter{Limit: 80, Window: time.Minute}, counterBound(80, time.Minute)},
	} {
		t.Run(fmt.Sprintf("%s %v and %v", c.old.Law(), c.old, c.new), func(t *testing.T) {
			limitertest.Rescale(t, c.old, c.new, c.bound)
		})
		t.Run(fmt.Sprintf("%s %v and %v", c.old.Law(), c.new, c.old), func(t *testing.T) {
			limitertest.Rescale(t, c.new, c.old, c.bound)
		})
	}
}

// A counter does not know how long the windows were that its counts belong to.
// So a longer Window goes on with the previous count as with one of its own,
// and lets go what that weighs less, but nothing of the current window.
func TestCounterWindowGrows(t *testing.T) {
	var (
		minute = limiter.SlidingWindowCounter{Limit: 50, Window: time.Minute}
		hour   = limiter.SlidingWindowCounter{Limit: 50, Window: time.Hour}
		noon   = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC).UnixMicro()
		at     = func(d time.Duration) int64 { return noon + d.Microseconds() }
		state  []byte
	)
	for _, c := range []struct {
		limit     limiter.Limit
		at        time.Duration
		cost      int64
		remaining int64
	}{
		{minute, 29*time.Minute + 30*time.Second, 40, 10},
		{minute, 30*time.Minute + 30*time.Second, 20, 10}, // 40 × 30 s ÷ 60 s + 20
		{hour, 30*time.Minute + 30*time.Second, 0, 10},    // 40 × 29.5 min ÷ 60 min, rounded up, + 20
		{hour, 59 * time.Minute, 0, 29},
		{hour, 60 * time.Minute, 0, 30},
		{hour, 90 * time.Minute, 0, 40},
		{minute, 31 * time.Minute, 0, 30},
	} {
		d, next, err := limiter.Decide(c.limit, nil, state, at(c.at), limiter.Ask{Cost: c.cost})
		require.NoError(t, err)
		require.True(t, d.Allowed)
		require.Equalf(t, c.remaining, d.Remaining, "%v at %v", c.limit, c.at)
		if len(next) > 0 {
			state = next
		}
	}
}

// Old and new numbers in turns on one log: as an admission by either keeps as
// many entries as the larger limit needs, each is held to its own numbers over
// all that was admitted by both.
func TestSlidingWindowSharesItsLog(t *testing.T) {
	limits := []limiter.SlidingWindow{{Limit: 8, Window: time.Minute}, {Limit: 3, Window: 10 * time.Second}, {Limit: 5, Window: 30 * time.Second}}
	rnd := rand.New(rand.NewPCG(1, 1))
	var (
		state    []byte
		admitted []int64
		denials  int
		now      = int64(1_700_000_000_000_000)
	)
	for i := range 20_000 {
		now += []int64{0, 1, 999_999, 1_000_000, 5_000_000, rnd.Int64N(20_000_000)}[rnd.IntN(6)]
		l := limits[0] // which comes first, so that its room is kept from the start
		if i > 0 {
			l = limits[rnd.IntN(len(limits))]
		}
		standing := int64(0)
		for j := len(admitted) - 1; j >= 0 && admitted[j] > now-l.Window.Microseconds(); j-- {
			standing++
		}
		cost := 1 + rnd.Int64N(2)
		d, next, err := limiter.Decide(l, nil, state, now, limiter.Ask{Cost: cost})
		require.NoError(t, err)
		require.Equalf(t, standing+cost <= l.Limit, d.Allowed, "%v with %d standing", l, standing)
		if !d.Allowed {
			denials++
			continue
		}
		state = next
		for range cost {
			admitted = append(admitted, now)
		}
	}
	require.Greater(t, denials, 1_000)
}
