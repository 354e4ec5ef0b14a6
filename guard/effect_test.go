package guard_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
)

// PR-10: beyond the limit nothing is done, and the answer does not show it.
func TestSilentPassesAndSaysSo(t *testing.T) {
	mails := guard.Rule{Name: "mails", By: guard.ByAccount, Effect: guard.Silent, Limits: []limiter.Limit{
		limiter.SlidingWindow{Limit: 3, Window: time.Hour}, limiter.SlidingWindow{Limit: 4, Window: 24 * time.Hour}}}
	b := newBench(t, nil, login(mails, ipRule(100)))
	for i := range 10 {
		pass := b.requireAdmitted(t, by("bob", here))
		require.Equal(t, i >= 3, pass.Silenced(), "attempt %d", i)
		require.Len(t, pass.Limits(), 1, "the silent rule does not show")
	}
	require.Equal(t, 7, b.events.count(guard.Silenced))
	b.clock.Advance(time.Hour)
	require.False(t, b.requireAdmitted(t, by("bob", here)).Silenced())
	// The day's limit is reached now. The hour's is charged no further by what it silences.
	for range 5 {
		require.True(t, b.requireAdmitted(t, by("bob", here)).Silenced())
	}
	require.Equal(t, int64(1), b.used(t, by("bob", here))[0])
}

func TestObserveCountsAlikeAndRefusesNothing(t *testing.T) {
	shadow := accountRule()
	shadow.Name, shadow.Effect = "shadow", guard.Observe
	b := newBench(t, nil, login(shadow, ipRule(10)))
	for range 10 {
		pass := b.requireAdmitted(t, by("bob", here))
		require.False(t, pass.Silenced())
		require.Len(t, pass.Limits(), 1)
		require.NoError(t, pass.Fail(ctx))
	}
	require.Equal(t, 5, b.events.count(guard.Observed))
	require.Equal(t, []int64{5, 10}, b.used(t, by("bob", here)))
	b.requireDenied(t, 15*time.Minute, by("bob", here))
	require.Equal(t, []int64{5, 10}, b.used(t, by("bob", here)))
}

func TestEventsTellWhatWasDecided(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(20)))
	b.fail(t, 5, by("bob", here))
	b.requireDenied(t, 15*time.Minute, by("bob", here))
	require.Equal(t, 5, b.events.count(guard.Admitted))
	require.Equal(t, 5, b.events.count(guard.Failed))
	last := b.events.events[len(b.events.events)-1]
	require.Equal(t, guard.Refused, last.Kind)
	require.Equal(t, "refused", last.Kind.String())
	require.Equal(t, "login", last.Action)
	require.Equal(t, "account", last.Rule)
	require.Equal(t, 15*time.Minute, last.RetryAfter)
	status, err := b.Inspect(ctx, by("bob", here))
	require.NoError(t, err)
	require.Equal(t, status[0].Subject, last.Subject)
}
