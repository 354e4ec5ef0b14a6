package limitertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

func refundOnce(r *rig) {
	for _, limit := range oneOfEach {
		key := limit.Law()
		others := r.admitted(some(key, limit, 2))
		before := r.peek(one(key, limit))

		receipt := r.admitted(some(key, limit, 3))
		twice := []limiter.Charge{receipt[0]} // a copy is a second receipt, and the caller's to avoid
		r.refund(receipt)
		require.Equal(r.t, before, r.peek(one(key, limit)), "after a charge and its refund")
		r.refund(receipt)
		require.Equal(r.t, before, r.peek(one(key, limit)), "after the refund of what was refunded")
		require.True(r.t, twice[0].Taken)

		r.refund(others)
		require.Zero(r.t, r.peek(one(key, limit)).ResetAfter)
	}

	// Of two admissions, each receipt gives back its own.
	first := r.admitted(one("two", five))
	r.clock.advance(time.Minute)
	second := r.admitted(one("two", five))
	r.refund(first)
	require.Equal(r.t, 15*time.Minute, r.peek(one("two", five)).ResetAfter, "the second stands")
	r.refund(second)
	require.Zero(r.t, r.peek(one("two", five)).ResetAfter)
}

func refundUntaken(r *rig) {
	r.admitted(some("account", five, 5))
	r.admitted(some("address", twenty, 3))
	r.refund(r.denied(one("account", five), one("address", twenty)))
	require.EqualValues(r.t, 0, r.remaining("account", five))
	require.EqualValues(r.t, 17, r.remaining("address", twenty))

	// Taken and untaken in one slice.
	taken := r.admitted(some("address", twenty, 2))
	r.refund([]limiter.Charge{{Key: "account", Limit: five, Ask: limiter.Ask{Cost: 1}}, taken[0]})
	require.EqualValues(r.t, 0, r.remaining("account", five))
	require.EqualValues(r.t, 17, r.remaining("address", twenty))
}

func refundForgotten(r *rig) {
	receipt := r.admitted(some("a", five, 3))
	require.NoError(r.t, r.store.Forget(r.t.Context(), []string{"a"}))
	r.refund(receipt)
	require.EqualValues(r.t, 5, r.remaining("a", five))
	r.admitted(some("a", five, 5))
	r.denied(one("a", five))
}

// refundOfNothing is of a receipt that no Take has made.
func refundOfNothing(r *rig) {
	r.admitted(one("account", five))
	nothing := one("account", nil)
	nothing.Taken = true
	charges := []limiter.Charge{nothing}
	var at *limiter.ChargeError
	require.ErrorAs(r.t, r.store.Refund(r.t.Context(), charges), &at)
	require.Zero(r.t, at.Index)
	require.False(r.t, charges[0].Taken)
	require.EqualValues(r.t, 4, r.remaining("account", five))
}

func advisory(group int, c limiter.Charge) limiter.Charge {
	c.Advisory = group
	return c
}

func advisoryDoNotVote(r *rig) {
	r.admitted(some("full", five, 5))
	charges := r.admitted(one("account", five), advisory(1, one("full", five)), advisory(2, one("shadow", five)))
	require.False(r.t, charges[1].Taken)
	require.False(r.t, charges[1].Decision.Allowed)
	require.Equal(r.t, 15*time.Minute, charges[1].Decision.RetryAfter)
	require.True(r.t, charges[2].Taken)
	require.EqualValues(r.t, 4, charges[2].Decision.Remaining)
	require.EqualValues(r.t, 4, r.remaining("account", five))

	r.refund(charges)
	require.EqualValues(r.t, 0, r.remaining("full", five))
	require.EqualValues(r.t, 5, r.remaining("shadow", five))

	// A batch in which nobody votes admits.
	charges = r.admitted(advisory(1, one("full", five)))
	require.False(r.t, charges[0].Taken)
}

func advisoryGroups(r *rig) {
	r.admitted(some("full", five, 5))
	charges := r.admitted(
		advisory(7, one("a", five)),
		one("account", five),
		advisory(3, one("b", five)),
		advisory(7, one("full", five)),
		advisory(3, one("c", five)),
		advisory(7, one("d", five)),
	)
	for i, taken := range []bool{false, true, true, false, true, false} {
		require.Equalf(r.t, taken, charges[i].Taken, "charge %d", i)
		require.Equalf(r.t, i != 3, charges[i].Decision.Allowed, "charge %d: its own vote", i)
	}
	require.EqualValues(r.t, 5, charges[0].Decision.Remaining, "as things are")
	for key, left := range map[string]int64{"a": 5, "account": 4, "b": 4, "full": 0, "c": 4, "d": 5} {
		require.Equal(r.t, left, r.remaining(key, five), key)
	}
}

func advisoryDenied(r *rig) {
	r.admitted(some("full", five, 5))
	charges := r.denied(advisory(1, one("a", five)), one("full", five), advisory(2, one("b", bucket)))
	require.True(r.t, charges[0].Decision.Allowed)
	require.False(r.t, charges[0].Taken)
	require.False(r.t, charges[2].Taken)
	require.EqualValues(r.t, 5, r.remaining("a", five))
	require.EqualValues(r.t, 10, r.remaining("b", bucket))
}
