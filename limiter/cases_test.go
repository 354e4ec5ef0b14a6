package limiter_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// AL-10: whatever the numbers, no internal period is rounded to nothing: what
// comes at one instant is the limit and not a unit more.
func TestOneInstantAdmitsTheLimitWhateverTheNumbers(t *testing.T) {
	rnd := rand.New(rand.NewPCG(10, 1))
	between := func(low, high float64) int64 { // evenly over the orders of magnitude
		return int64(math.Exp(math.Log(low) + rnd.Float64()*(math.Log(high)-math.Log(low))))
	}
	for range 1_000 {
		n := between(1, 1_000_001)
		window := time.Duration(between(1_000, float64(30*day/time.Microsecond))) * time.Microsecond
		half := min(window, 31*day/2)
		now := 1_700_000_000_000_000 + rnd.Int64N(1_000_000_000_000)
		for _, limit := range []limiter.Limit{
			limiter.TokenBucket{Capacity: n, Refill: n, Per: window},
			limiter.LeakyBucket{Capacity: n, Leak: n, Per: window},
			limiter.FixedWindow{Limit: n, Window: window},
			limiter.SlidingWindow{Limit: min(n, 1_000), Window: window},
			limiter.SlidingWindowCounter{Limit: n, Window: half},
		} {
			require.NoError(t, limit.Validate(), "%v", limit)
			cost := n
			if limit.Law() == "sliding_window" {
				cost = min(n, 1_000)
			}
			steps := []int64{cost}
			if cost <= 50 { // one by one, too
				steps = make([]int64, cost)
				for i := range steps {
					steps[i] = 1
				}
			}
			var d limiter.Decision
			var state []byte
			var err error
			for _, c := range steps {
				d, state, err = limiter.Decide(limit, nil, state, now, limiter.Ask{Cost: c})
				require.NoError(t, err, "%v", limit)
				require.True(t, d.Allowed, "%v", limit)
			}
			require.Zero(t, d.Remaining, "%v", limit)
			d, _, err = limiter.Decide(limit, nil, state, now, limiter.Ask{Cost: 1})
			require.NoError(t, err)
			require.False(t, d.Allowed, "%s %v", limit.Law(), limit)
			require.Positive(t, d.RetryAfter, "%s %v", limit.Law(), limit)
			require.LessOrEqual(t, d.RetryAfter, 2*window, "%s %v", limit.Law(), limit)
		}
	}
}
