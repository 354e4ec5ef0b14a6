package guard_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
)

// told are the events of a kind, in their order.
func (r *recorder) told(k guard.EventKind) (events []guard.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == k {
			events = append(events, e)
		}
	}
	return events
}

// Whoever counts refusals with More false counts refused attempts, and whoever
// counts all of them counts the rules that denied.
func TestARefusedAttemptIsOneEventARule(t *testing.T) {
	account := accountRule()
	account.Limits = append(account.Limits, limiter.SlidingWindow{Limit: 5, Window: 24 * time.Hour})
	wide := ipRule(100)
	wide.Name = "wide"
	b := newBench(t, nil, login(account, ipRule(5), wide))
	b.fail(t, 5, by("bob", here))
	b.requireDenied(t, 24*time.Hour, by("bob", here))
	refused := b.events.told(guard.Refused)
	require.Len(t, refused, 2)
	require.Equal(t, "account", refused[0].Rule)
	require.Equal(t, 24*time.Hour, refused[0].RetryAfter, "the longest wait of its limits")
	require.True(t, refused[0].More)
	require.Equal(t, "ip", refused[1].Rule)
	require.Equal(t, 15*time.Minute, refused[1].RetryAfter)
	require.False(t, refused[1].More)
}

func TestAnAttemptThatNobodyCanDecideIsToldOnce(t *testing.T) {
	b, store := newFlakyBench(t, 1, accountRule(), withOutage(ipRule(5), guard.OutageLocal))
	store.down.Store(true)
	_, err := b.Check(ctx, by("bob", here))
	require.ErrorIs(t, err, guard.ErrUnavailable)
	require.Equal(t, []guard.Event{{Kind: guard.Unavailable, Action: "login"}}, b.events.told(guard.Unavailable))

	b, store = newFlakyBench(t, 1, withOutage(accountRule(), guard.OutageLocal))
	store.down.Store(true)
	b.fail(t, 1, by("bob", here))
	require.Empty(t, b.events.told(guard.Unavailable), "a rule has decided")
}

// An event's action is one of the policies, whatever Unlock was asked for.
func TestAFaultOfUnlockNamesAnAction(t *testing.T) {
	b := newBench(t, func(c *guard.Config) { c.Store = brokenStore{errors.New("down")} }, login(accountRule()))
	require.ErrorIs(t, b.Unlock(ctx, "bob", "login/account"), guard.ErrUnavailable)
	require.ErrorIs(t, b.Unlock(ctx, "bob", "logn"), guard.ErrNoPolicy)
	broken := b.events.told(guard.Broken)
	require.Len(t, broken, 1)
	require.Equal(t, "login", broken[0].Action)
}
