package memstore_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
	"authguard/limiter/memstore"
)

// lawsOf is a limit of every law for one window.
func lawsOf(w time.Duration) []limiter.Limit {
	return []limiter.Limit{
		limiter.TokenBucket{Capacity: 5, Refill: 5, Per: w},
		limiter.LeakyBucket{Capacity: 5, Leak: 5, Per: w},
		limiter.FixedWindow{Limit: 5, Window: w},
		limiter.SlidingWindow{Limit: 5, Window: w},
		limiter.SlidingWindowCounter{Limit: 5, Window: w},
		limiter.Backoff{Free: 1, Base: w / 10, Factor: 2, Max: w, LockAfter: 4, Forget: w, ForgetBeyond: 2 * w},
		limiter.Distinct{Limit: 5, Window: w},
	}
}

// TM-01, TM-02, TM-05, TM-07, ME-01, ME-05: whatever is done to a key, by
// writes, reads, denials and late refunds, it lives as long as it counts and no
// more than a second longer.
func TestEveryKeyLivesAsLongAsItCounts(t *testing.T) {
	for _, w := range []time.Duration{time.Second, time.Minute, 15 * time.Minute, 24 * time.Hour} {
		for _, limit := range lawsOf(w) {
			t.Run(fmt.Sprintf("%s %v", limit.Law(), w), func(t *testing.T) {
				c := newClock()
				s := memstore.New(memstore.Config{Now: c.Now})
				ask := func(i int) []limiter.Charge {
					return []limiter.Charge{{Key: "k", Limit: limit, Ask: limiter.Ask{Cost: 1, Member: fmt.Sprintf("member %d", i)[:limiter.MemberBytes]}}}
				}
				var receipt []limiter.Charge
				for i := range 11 { // over two windows, some admitted and some denied
					c.Advance(w / 5)
					charges := ask(i)
					_, err := s.Take(ctx, charges)
					require.NoError(t, err)
					if charges[0].Taken {
						receipt = charges
					}
					require.Positive(t, charges[0].Decision.ResetAfter)
					require.LessOrEqual(t, charges[0].Decision.ResetAfter, 2*w)
				}
				require.NotNil(t, receipt)
				look := ask(0)
				require.NoError(t, s.Peek(ctx, look))
				reset := look[0].Decision.ResetAfter
				require.Positive(t, reset, "something still counts")

				c.Advance(reset - time.Microsecond)
				s.Sweep()
				require.Equal(t, 1, s.Stats().Keys, "not forgotten while it counts")
				require.NoError(t, s.Peek(ctx, look))
				require.Positive(t, look[0].Decision.ResetAfter)

				c.Advance(time.Second + time.Microsecond)
				require.NoError(t, s.Peek(ctx, look)) // a read does not prolong it
				s.Sweep()
				require.Zero(t, s.Stats().Keys)
				require.NoError(t, s.Refund(ctx, receipt)) // and a late refund does not bring it back
				require.Zero(t, s.Stats().Keys)

				usable, err := s.Take(ctx, ask(0))
				require.NoError(t, err)
				require.True(t, usable, "usable again")
				c.Advance(3 * w)
				c.Advance(time.Second)
				s.Sweep()
				require.Zero(t, s.Stats().Keys)
			})
		}
	}
}

// TM-02: a key that goes away between any two calls, as one does whose limit is
// whole just then, comes back as a new one that goes away as well.
func TestAKeyThatExpiresBetweenCallsIsNotImmortal(t *testing.T) {
	for _, limit := range lawsOf(time.Minute) {
		c := newClock()
		s := memstore.New(memstore.Config{Now: c.Now})
		for range 20 { // a health check that beats exactly at the window's length
			charges := []limiter.Charge{{Key: "k", Limit: limit, Ask: limiter.Ask{Cost: 1, Member: "12345678"}}}
			ok, err := s.Take(ctx, charges)
			require.NoError(t, err)
			require.True(t, ok, limit.Law())
			c.Advance(charges[0].Decision.ResetAfter)
			s.Sweep()
			require.NoError(t, s.Refund(ctx, charges))
		}
		c.Advance(2*time.Minute + time.Second)
		s.Sweep()
		require.Zero(t, s.Stats().Keys, limit.Law())
	}
}

// ME-02: a sweep of a hundred thousand keys holds no lock for long. It reads the
// clock once under each lock, so no lock is held longer than the pause between
// two readings.
func TestASweepHoldsNoLockForLong(t *testing.T) {
	worst := ""
	for range 5 { // the best of some: on a busy machine a goroutine may have to wait anywhere
		var sweeping atomic.Bool
		var readings int
		var last time.Time
		var pause time.Duration
		at := time.Unix(1_800_000_000, 0)
		s := memstore.New(memstore.Config{Now: func() time.Time {
			if sweeping.Load() {
				now := time.Now()
				if readings > 0 {
					pause = max(pause, now.Sub(last))
				}
				last = now
				readings++
			}
			return at
		}})
		limit := limiter.FixedWindow{Limit: 5, Window: time.Minute}
		for i := range 100_000 {
			hit(t, s, fmt.Sprint(i), limit, 1)
		}
		at = at.Add(2 * time.Minute)
		sweeping.Store(true)
		begin := time.Now()
		s.Sweep()
		took := time.Since(begin)
		require.Zero(t, s.Stats().Keys)
		require.Greater(t, readings, 100, "many locks, not one")
		if pause < max(10*time.Millisecond, took/4) { // a slow machine is slow throughout
			return
		}
		worst += fmt.Sprintf(" %v of %v", pause, took)
	}
	require.Fail(t, "a lock was held for"+worst)
}
