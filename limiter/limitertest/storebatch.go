package limitertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// AL-01.
func lastUnit(r *rig) {
	for _, limit := range oneOfEach {
		most := r.remaining(limit.Law(), limit)
		for left := most - 1; left >= 0; left-- {
			charges := r.admitted(one(limit.Law(), limit))
			require.Equal(r.t, left, charges[0].Decision.Remaining)
			require.Equal(r.t, most, charges[0].Decision.Limit)
		}
		d := r.denied(one(limit.Law(), limit))[0].Decision
		require.Zero(r.t, d.Remaining)
		require.Positive(r.t, d.RetryAfter)
	}
}

// MC-02: an account that has used 5 of 5, from an address that has used 3 of 20.
func allOrNothing(r *rig) {
	r.admitted(some("account", five, 5))
	r.admitted(some("address", twenty, 3))
	for range 10 {
		r.denied(one("account", five), one("address", twenty))
		r.denied(one("address", twenty), one("account", five), one("tenant", hundred))
	}
	require.EqualValues(r.t, 17, r.remaining("address", twenty))
	require.EqualValues(r.t, 100, r.remaining("tenant", hundred))
	require.EqualValues(r.t, 0, r.remaining("account", five))
}

// MC-03.
func keysShareNothing(r *rig) {
	for _, limit := range oneOfEach {
		a, b := limit.Law()+"/a", limit.Law()+"/b"
		most := r.remaining(a, limit)
		r.admitted(some(a, limit, most))
		r.denied(one(a, limit))
		require.Equal(r.t, most, r.remaining(b, limit))
		charges := r.admitted(some(b, limit, most))
		r.refund(charges)
		r.denied(one(a, limit))
	}
}

func ownWaits(r *rig) {
	r.admitted(some("window", five, 5))
	r.clock.set(10 * time.Second)
	r.admitted(some("bucket", bucket, 10))
	r.clock.set(10*time.Second + 250*time.Millisecond)
	charges := r.denied(some("bucket", bucket, 3), one("free", hundred), one("window", five))
	require.Equal(r.t, 2750*time.Millisecond, charges[0].Decision.RetryAfter)
	require.Zero(r.t, charges[1].Decision.RetryAfter)
	require.Equal(r.t, 15*time.Minute-10*time.Second-250*time.Millisecond, charges[2].Decision.RetryAfter)
	require.Equal(r.t, charges[2].Decision.RetryAfter, charges[2].Decision.ResetAfter)
}

func othersAsTheyAre(r *rig) {
	r.admitted(some("account", five, 5))
	r.admitted(some("address", twenty, 3))
	charges := []limiter.Charge{some("address", twenty, 4), some("account", five, 1), some("new", bucket, 2)}
	charges[0].Taken = true // of an earlier batch in the same slice
	charges = r.denied(charges...)
	for i, remaining := range []int64{17, 0, 10} {
		c := charges[i]
		require.Equal(r.t, remaining, c.Decision.Remaining)
		require.Equal(r.t, i != 1, c.Decision.Allowed)
		require.False(r.t, c.Taken)
	}
	require.Zero(r.t, charges[2].Decision.ResetAfter, "nothing stands of a key that was never charged")
}

func noBatch(r *rig) {
	good := one("good", five)
	for _, c := range []struct {
		name    string
		charges []limiter.Charge
		index   int // of the charge that is wrong, or -1
	}{
		{"none", nil, -1},
		{"empty", []limiter.Charge{}, -1},
		{"the same key twice", []limiter.Charge{good, one("other", five), good}, 2},
		{"the same key twice, for another limit", []limiter.Charge{good, one("good", bucket)}, 1},
		{"cost 0", []limiter.Charge{good, some("other", five, 0)}, 1},
		{"a negative cost", []limiter.Charge{some("other", five, -1), good}, 0},
		{"no limit", []limiter.Charge{good, one("other", nil)}, 1},
		{"no numbers", []limiter.Charge{good, one("other", limiter.SlidingWindow{})}, 1},
		{"bad numbers", []limiter.Charge{good, one("other", limiter.TokenBucket{Capacity: 1, Refill: 1, Per: -1})}, 1},
	} {
		ok, err := r.store.Take(r.t.Context(), c.charges)
		require.Error(r.t, err, c.name)
		require.False(r.t, ok, c.name)
		require.NotErrorIs(r.t, err, limiter.ErrCostTooHigh, c.name)
		if c.index >= 0 {
			var at *limiter.ChargeError
			require.ErrorAs(r.t, err, &at, c.name)
			require.Equal(r.t, c.index, at.Index, c.name)
			require.NotContains(r.t, err.Error(), `"good"`, "a key may be a secret")
		}
		for _, charge := range c.charges {
			require.False(r.t, charge.Taken, c.name)
		}
		require.EqualValues(r.t, 5, r.remaining("good", five), c.name)
		require.EqualValues(r.t, 5, r.remaining("other", five), c.name)
	}
}

// AL-09.
func costTooHigh(r *rig) {
	for i, charges := range [][]limiter.Charge{
		{some("a", five, 6)},
		{some("a", five, 6), one("b", bucket)},
		{one("b", bucket), one("c", hundred), some("a", five, 1_000_000_000)},
	} {
		ok, err := r.store.Take(r.t.Context(), charges)
		require.ErrorIs(r.t, err, limiter.ErrCostTooHigh)
		require.False(r.t, ok)
		var at *limiter.ChargeError
		require.ErrorAs(r.t, err, &at)
		require.Equal(r.t, []int{0, 0, 2}[i], at.Index)
		require.EqualValues(r.t, 5, r.remaining("a", five))
		require.EqualValues(r.t, 10, r.remaining("b", bucket))
		require.EqualValues(r.t, 100, r.remaining("c", hundred))
		require.ErrorIs(r.t, r.store.Peek(r.t.Context(), charges), limiter.ErrCostTooHigh)
	}
}

func peekTells(r *rig) {
	for _, limit := range oneOfEach {
		key := limit.Law()
		for range 130 {
			told := r.peek(some(key, limit, 3))
			require.Equal(r.t, told, r.peek(some(key, limit, 3)), "a second look")
			if left := r.remaining(key, limit); told.Allowed {
				require.Equal(r.t, left, told.Remaining)
			}
			_, charges := r.take(some(key, limit, 3))
			d := charges[0].Decision
			require.Equal(r.t, told.Allowed, d.Allowed)
			require.Equal(r.t, told.RetryAfter, d.RetryAfter)
			if !d.Allowed {
				require.Equal(r.t, told, d)
				r.clock.advance(d.RetryAfter / 2)
			}
		}
	}
	// Each limit for itself, in one batch, and no vote.
	r.admitted(some("full", five, 5))
	charges := []limiter.Charge{one("full", five), one("new", five)}
	require.NoError(r.t, r.store.Peek(r.t.Context(), charges))
	require.False(r.t, charges[0].Decision.Allowed)
	require.True(r.t, charges[1].Decision.Allowed)
	require.EqualValues(r.t, 5, charges[1].Decision.Remaining)
}

// forget, and what is left of the others.
func forget(r *rig) {
	for _, key := range []string{"a", "b", "c"} {
		r.admitted(some(key, five, 5))
	}
	require.NoError(r.t, r.store.Forget(r.t.Context(), []string{"a", "never seen", "c", "a"}))
	require.NoError(r.t, r.store.Forget(r.t.Context(), nil))
	require.EqualValues(r.t, 5, r.remaining("a", five))
	require.EqualValues(r.t, 0, r.remaining("b", five))
	require.EqualValues(r.t, 5, r.remaining("c", five))
	r.admitted(some("a", bucket, 10)) // nothing is left of the other law's state
}
