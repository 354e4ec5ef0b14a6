package limiter_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

func TestValidateNamesFieldAndValue(t *testing.T) {
	const us = time.Microsecond
	counts := []int64{0, -1, math.MinInt64, 1_000_001, math.MaxInt64}
	windows := []time.Duration{0, -1, math.MinInt64, 1, us, time.Millisecond - us, time.Millisecond + 1, 31*day + us, math.MaxInt64}
	refused := func(limit limiter.Limit, field string, value any) {
		err := limit.Validate()
		require.Errorf(t, err, "%#v", limit)
		require.Contains(t, err.Error(), fmt.Sprintf("%s is %v", field, value))
	}
	for _, n := range counts {
		refused(limiter.TokenBucket{Capacity: n, Refill: 1, Per: time.Second}, "TokenBucket.Capacity", n)
		refused(limiter.TokenBucket{Capacity: 1, Refill: n, Per: time.Second}, "TokenBucket.Refill", n)
		refused(limiter.LeakyBucket{Capacity: n, Leak: 1, Per: time.Second}, "LeakyBucket.Capacity", n)
		refused(limiter.LeakyBucket{Capacity: 1, Leak: n, Per: time.Second}, "LeakyBucket.Leak", n)
		refused(limiter.FixedWindow{Limit: n, Window: time.Second}, "FixedWindow.Limit", n)
		refused(limiter.SlidingWindow{Limit: n, Window: time.Second}, "SlidingWindow.Limit", n)
		refused(limiter.SlidingWindowCounter{Limit: n, Window: time.Second}, "SlidingWindowCounter.Limit", n)
	}
	for _, d := range windows {
		refused(limiter.TokenBucket{Capacity: 1, Refill: 1, Per: d}, "TokenBucket.Per", d)
		refused(limiter.LeakyBucket{Capacity: 1, Leak: 1, Per: d}, "LeakyBucket.Per", d)
		refused(limiter.FixedWindow{Limit: 1, Window: d}, "FixedWindow.Window", d)
		refused(limiter.SlidingWindow{Limit: 1, Window: d}, "SlidingWindow.Window", d)
		refused(limiter.SlidingWindowCounter{Limit: 1, Window: d}, "SlidingWindowCounter.Window", d)
	}
	// An exact log of so many entries costs too much: the counter is named (AL-13).
	refused(limiter.SlidingWindow{Limit: 1_001, Window: time.Second}, "SlidingWindow.Limit", 1_001)
	require.ErrorContains(t, limiter.SlidingWindow{Limit: 1_001, Window: time.Second}.Validate(), "SlidingWindowCounter")
	// Counts that live two windows must not live longer than 31 days.
	refused(limiter.SlidingWindowCounter{Limit: 1, Window: 31*day/2 + us}, "SlidingWindowCounter.Window", 31*day/2+us)

	slow := limiter.TokenBucket{Capacity: 32, Refill: 1, Per: day}
	require.ErrorContains(t, slow.Validate(), "TokenBucket of Capacity 32 at 1 per 24h0m0s takes longer than 744h0m0s")
	slow.Capacity = 31
	require.NoError(t, slow.Validate())
}

func TestBadNumbersRefuse(t *testing.T) {
	for _, limit := range []limiter.Limit{
		limiter.TokenBucket{}, limiter.LeakyBucket{}, limiter.FixedWindow{}, limiter.SlidingWindow{}, limiter.SlidingWindowCounter{},
		limiter.TokenBucket{Capacity: 1}, limiter.FixedWindow{Limit: 1}, limiter.SlidingWindow{Limit: 1}, limiter.SlidingWindowCounter{Limit: 1},
	} {
		for _, state := range [][]byte{nil, make([]byte, 16)} {
			for cost := range int64(2) {
				d, out, err := limiter.Decide(limit, nil, state, 1, limiter.Ask{Cost: cost})
				require.Equalf(t, limit.Validate(), err, "%#v", limit)
				require.Error(t, err)
				require.Zero(t, d)
				require.Empty(t, out)
				out, err = limit.Refund(nil, state, 1, 1, limiter.Ask{Cost: cost})
				require.Equal(t, limit.Validate(), err)
				require.Empty(t, out)
			}
		}
	}
}

// The state says all that a denied client can make a store hold (AL-06).
func TestDenialsTakeNoRoom(t *testing.T) {
	limit := limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}
	const start = 1_700_000_000_000_000
	var state []byte
	for s := range int64(900) {
		_, next, err := limiter.Decide(limit, nil, state, start+s*1_000_000, limiter.Ask{Cost: 1})
		require.NoError(t, err)
		require.Equal(t, s < 5, len(next) > 0)
		if len(next) > 0 {
			state = next
		}
		require.LessOrEqual(t, len(state), 5*8)
	}
}
