package guard_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
)

func TestInspectExplainsAndConsumesNothing(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(20)))
	b.fail(t, 5, by("bob", here))
	b.clock.Advance(time.Minute)
	for range 100 {
		status, err := b.Inspect(ctx, by("BOB", here))
		require.NoError(t, err)
		require.Len(t, status, 2)
		s := status[0]
		require.Equal(t, "account", s.Rule)
		require.Equal(t, guard.ByAccount, s.By)
		require.EqualValues(t, 5, s.Used())
		require.False(t, s.Decision.Allowed)
		require.Equal(t, 14*time.Minute, s.Decision.RetryAfter)
		require.True(t, status[1].Decision.Allowed)
		require.EqualValues(t, 15, status[1].Decision.Remaining)
	}
}

func TestInspectAsksAboutWhatIsGiven(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(20)))
	status, err := b.Inspect(ctx, by("bob", netip.Addr{}))
	require.NoError(t, err)
	require.Len(t, status, 1)
	require.Equal(t, "account", status[0].Rule)
	status, err = b.Inspect(ctx, by("", here))
	require.NoError(t, err)
	require.Len(t, status, 1)
	require.Equal(t, "ip", status[0].Rule)
	_, err = b.Inspect(ctx, by("", netip.Addr{}))
	require.ErrorIs(t, err, guard.ErrMissing)
}

// AC-05: every operation finds an account under the same keys.
func TestOneIdentityForCheckInspectAndUnlock(t *testing.T) {
	for _, name := range []string{"bob", " BOB", "ⓑob", "bo\u00adb"} {
		b := newBench(t, nil, login(accountRule()))
		b.fail(t, 5, by(name, here))
		require.Equal(t, []int64{5}, b.used(t, by("bob", here)))
		require.NoError(t, b.Unlock(ctx, "Bob"))
		require.Equal(t, []int64{0}, b.used(t, by(name, here)))
	}
}
