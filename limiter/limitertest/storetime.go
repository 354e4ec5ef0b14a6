package limitertest

import (
	"context"
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// CF-02, TM-12, AL-12: what is charged counts for the whole window, and for no
// microsecond more.
func windows(r *rig) {
	const day = 24 * time.Hour
	for _, w := range []time.Duration{2 * time.Millisecond, time.Second, time.Minute, 15 * time.Minute, day, 31 * day} {
		for _, limit := range []limiter.Limit{
			limiter.SlidingWindow{Limit: 5, Window: w},
			limiter.FixedWindow{Limit: 5, Window: w},
			limiter.TokenBucket{Capacity: 5, Refill: 5, Per: w},
			limiter.SlidingWindowCounter{Limit: 5, Window: w / 2},
		} {
			key := fmt.Sprintf("%s %v", limit.Law(), w)
			at := func(d time.Duration) { r.clock.set(d) }
			at(0)
			for range 5 {
				r.admitted(one(key, limit))
			}
			require.Equal(r.t, w, r.denied(one(key, limit))[0].Decision.ResetAfter, key)
			if limit.Law() != "token_bucket" && limit.Law() != "sliding_window_counter" { // which give back little by little
				at(w - time.Microsecond)
				require.Equal(r.t, time.Microsecond, r.denied(one(key, limit))[0].Decision.RetryAfter, key)
			}
			at(w - time.Microsecond)
			require.Falsef(r.t, r.peek(some(key, limit, 5)).Allowed, "%s: whole too soon", key)
			at(w)
			r.admitted(some(key, limit, 5))
		}
	}
}

// A key whose limit gets other numbers goes on with what it has counted.
func numbersChange(r *rig) {
	r.admitted(some("a", five, 5))
	r.clock.set(time.Minute)
	hour := limiter.SlidingWindow{Limit: 6, Window: time.Hour}
	require.EqualValues(r.t, 1, r.remaining("a", hour))
	r.admitted(one("a", hour))
	require.Equal(r.t, 14*time.Minute, r.denied(one("a", five))[0].Decision.RetryAfter)
	r.clock.set(30 * time.Minute)
	require.EqualValues(r.t, 0, r.remaining("a", hour), "what is past for the old numbers still stands for the new")
}

func cancelled(r *rig) {
	receipt := r.admitted(one("a", five))
	ctx, cancel := context.WithCancel(r.t.Context())
	cancel()
	charges := []limiter.Charge{one("a", five), one("b", five)}
	ok, err := r.store.Take(ctx, charges)
	require.ErrorIs(r.t, err, context.Canceled)
	require.False(r.t, ok)
	require.False(r.t, charges[0].Taken || charges[1].Taken)
	require.ErrorIs(r.t, r.store.Peek(ctx, charges), context.Canceled)
	require.ErrorIs(r.t, r.store.Forget(ctx, []string{"a"}), context.Canceled)
	require.ErrorIs(r.t, r.store.Refund(ctx, receipt), context.Canceled)
	require.EqualValues(r.t, 4, r.remaining("a", five))
	require.EqualValues(r.t, 5, r.remaining("b", five))
}

// TM-09, TM-10: the waits that are told then are true, so the store must keep
// what a denial has mended.
func clockBack(r *rig) {
	for _, limit := range oneOfEach {
		key := limit.Law()
		r.clock.set(100 * time.Second)
		most := r.remaining(key, limit)
		r.admitted(some(key, limit, most-1))
		r.clock.set(89 * time.Second)
		require.EqualValues(r.t, 1, r.remaining(key, limit))
		r.admitted(one(key, limit))
		r.clock.set(88 * time.Second)
		before := r.peek(one(key, limit))
		d := r.denied(one(key, limit))[0].Decision
		require.Equal(r.t, before, d)
		r.clock.advance(d.RetryAfter - time.Microsecond)
		require.Equal(r.t, time.Microsecond, r.denied(one(key, limit))[0].Decision.RetryAfter)
		r.clock.advance(time.Microsecond)
		r.admitted(one(key, limit))
	}
	// A batch that is denied while the clock is behind keeps the waits, too.
	r.clock.set(100 * time.Second)
	r.admitted(some("x", five, 5), some("y", bucket, 10))
	r.clock.set(90 * time.Second)
	charges := r.denied(one("x", five), one("y", bucket), one("z", five))
	require.Equal(r.t, time.Second, charges[1].Decision.RetryAfter)
	r.clock.advance(15 * time.Minute)
	r.admitted(one("x", five), one("y", bucket), one("z", five))
}

func clockForward(r *rig) {
	for _, limit := range oneOfEach {
		r.clock.set(0)
		most := r.remaining(limit.Law(), limit)
		r.admitted(some(limit.Law(), limit, most))
		r.clock.set(10_000 * time.Second)
		r.admitted(some(limit.Law(), limit, most))
		r.denied(one(limit.Law(), limit))
	}
}

// TM-13: all that a batch is told belongs to one instant, or, by a compensating
// store, all that each charge is told.
func oneInstant(r *rig) {
	batch := func() []limiter.Charge {
		return []limiter.Charge{one("a", five), one("b", bucket), one("c", hundred), advisory(1, one("d", twenty))}
	}
	r.clock.tick.Store(time.Second.Microseconds())
	ask := func(call func([]limiter.Charge) error) []limiter.Charge {
		charges := batch()
		before := r.clock.readings.Load()
		require.NoError(r.t, call(charges))
		readings := r.clock.readings.Load() - before
		if r.compensating {
			for _, c := range charges {
				require.Less(r.t, c.Decision.At, r.clock.now().UnixMicro(), "an instant of this call")
				require.GreaterOrEqual(r.t, c.Decision.At, start.Add(time.Duration(before)*time.Second).UnixMicro())
			}
			return charges
		}
		require.EqualValues(r.t, 1, readings, "readings of the clock")
		for _, c := range charges {
			require.Equal(r.t, charges[0].Decision.At, c.Decision.At)
		}
		return charges
	}
	take := func(charges []limiter.Charge) error {
		_, err := r.store.Take(r.t.Context(), charges)
		return err
	}
	first := ask(take)[0].Decision.At
	for range 4 {
		ask(take)
	}
	denied := ask(take)[0].Decision
	require.False(r.t, denied.Allowed)
	require.Equal(r.t, first+five.Window.Microseconds(), denied.At+denied.RetryAfter.Microseconds(), "the wait counts from At")
	ask(func(charges []limiter.Charge) error { return r.store.Peek(r.t.Context(), charges) })
}
