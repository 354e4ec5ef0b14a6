package limiter_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
	"authguard/limiter/memstore"
)

var ctx = context.Background()

func newLimiter(t testing.TB, limits ...limiter.Limit) *limiter.Limiter {
	t.Helper()
	l, err := limiter.New(memstore.New(memstore.Config{}), limits...)
	require.NoError(t, err)
	return l
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	_, err := limiter.New(nil, limiter.TokenBucket{Capacity: 1, Refill: 1, Per: time.Second})
	require.EqualError(t, err, "limiter: store is nil")
	_, err = limiter.New(memstore.New(memstore.Config{}))
	require.EqualError(t, err, "limiter: no limits")
	_, err = limiter.New(memstore.New(memstore.Config{}), nil)
	require.EqualError(t, err, "limiter: limit 0 is nil")
	_, err = limiter.New(memstore.New(memstore.Config{}), limiter.TokenBucket{})
	require.EqualError(t, err, "limiter: TokenBucket.Capacity is 0, want 1 to 1000000")
}

func TestTiersAreAllOrNothingAndSayWhoDenies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t,
			limiter.SlidingWindow{Limit: 10, Window: time.Second},
			limiter.SlidingWindow{Limit: 15, Window: time.Minute},
			limiter.SlidingWindowCounter{Limit: 1_000, Window: time.Hour},
		)
		for i := range 10 {
			r, err := l.Allow(ctx, "k")
			require.NoError(t, err)
			require.True(t, r.Allowed)
			require.EqualValues(t, 9-i, r.Remaining, "the tightest tier")
			require.Empty(t, r.Denying())
		}
		r, err := l.Allow(ctx, "k")
		require.NoError(t, err)
		require.False(t, r.Allowed)
		require.Equal(t, time.Second, r.RetryAfter)
		require.Equal(t, []limiter.Tier{r.Tiers[0]}, r.Denying())
		require.EqualValues(t, 5, r.Tiers[1].Decision.Remaining, "a denial charges no tier")

		time.Sleep(time.Second)
		r, err = l.AllowN(ctx, "k", 5)
		require.NoError(t, err)
		require.True(t, r.Allowed)
		r, err = l.AllowN(ctx, "k", 6)
		require.NoError(t, err)
		require.Len(t, r.Denying(), 2)
		require.Equal(t, 59*time.Second, r.RetryAfter, "the longest wait")

		_, err = l.AllowN(ctx, "k", 11)
		require.ErrorIs(t, err, limiter.ErrCostTooHigh)
		_, err = l.AllowN(ctx, "k", 0)
		require.Error(t, err)

		peek, err := l.Peek(ctx, "k")
		require.NoError(t, err)
		require.EqualValues(t, 0, peek.Remaining)
		require.NoError(t, l.Reset(ctx, "k"))
		r, err = l.AllowN(ctx, "k", 10)
		require.NoError(t, err)
		require.True(t, r.Allowed)
	})
}

func TestWaitShapesAnEvenStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limiter.LeakyBucket{Capacity: 5, Leak: 1, Per: time.Second})
		start := time.Now()
		var mu sync.Mutex
		var turns []time.Duration
		var full atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := l.Wait(ctx, ""); err != nil {
					if errors.Is(err, limiter.ErrDenied) {
						full.Add(1)
					}
					return
				}
				mu.Lock()
				defer mu.Unlock()
				turns = append(turns, time.Since(start))
			})
		}
		wg.Wait()
		require.EqualValues(t, 3, full.Load(), "the queue has a bound")
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second}, turns)
	})
}

func TestWaitGivesItsPlaceBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limiter.LeakyBucket{Capacity: 2, Leak: 1, Per: time.Hour})
		require.NoError(t, l.Wait(ctx, ""))
		hurried, cancel := context.WithCancel(ctx)
		go func() {
			time.Sleep(time.Minute)
			cancel()
		}()
		require.ErrorIs(t, l.Wait(hurried, ""), context.Canceled)
		r, err := l.Peek(ctx, "")
		require.NoError(t, err)
		require.EqualValues(t, 1, r.Remaining, "the place is free again")

		soon, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		start := time.Now()
		require.ErrorIs(t, l.Wait(soon, ""), limiter.ErrDenied)
		require.Zero(t, time.Since(start), "it does not wait in vain")
		r, err = l.Peek(ctx, "")
		require.NoError(t, err)
		require.EqualValues(t, 1, r.Remaining)
	})
}

func TestWaitAsksAgainWhenItIsDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limiter.TokenBucket{Capacity: 2, Refill: 1, Per: time.Second})
		start := time.Now()
		for range 5 {
			require.NoError(t, l.Wait(ctx, "k"))
		}
		require.Equal(t, 3*time.Second, time.Since(start))
		cancelled, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		require.ErrorIs(t, l.Wait(cancelled, "k"), limiter.ErrDenied)
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(t, limiter.TokenBucket{Capacity: 1, Refill: 1, Per: time.Hour})
		require.NoError(t, l.Wait(ctx, "k"))
		hurried, cancel := context.WithCancel(ctx)
		time.AfterFunc(time.Minute, cancel)
		start := time.Now()
		require.ErrorIs(t, l.Wait(hurried, "k"), context.Canceled)
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestALockIsNotWaitedFor(t *testing.T) {
	l := newLimiter(t, limiter.Backoff{Free: 1, Base: time.Millisecond, Factor: 1, Max: time.Millisecond, LockAfter: 2, Forget: time.Hour, ForgetBeyond: time.Hour})
	require.NoError(t, l.Wait(ctx, "k"))
	require.NoError(t, l.Wait(ctx, "k"))
	require.ErrorIs(t, l.Wait(ctx, "k"), limiter.ErrDenied)
}

func TestAllowMember(t *testing.T) {
	l := newLimiter(t, limiter.Distinct{Limit: 2, Window: time.Hour})
	for _, c := range []struct {
		member string
		ok     bool
	}{{"a", true}, {"b", true}, {"a", true}, {"c", false}, {"b", true}} {
		r, err := l.AllowMember(ctx, "198.51.100.9", c.member)
		require.NoError(t, err)
		require.Equal(t, c.ok, r.Allowed, c.member)
	}
}

func TestStoreErrorsReachTheCaller(t *testing.T) {
	l := newLimiter(t, limiter.TokenBucket{Capacity: 2, Refill: 1, Per: time.Second})
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err := l.Allow(gone, "k")
	require.ErrorIs(t, err, context.Canceled)
	_, err = l.AllowMember(gone, "k", "m")
	require.ErrorIs(t, err, context.Canceled)
	_, err = l.Peek(gone, "k")
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, l.Wait(gone, "k"), context.Canceled)
	require.ErrorIs(t, l.Reset(gone, "k"), context.Canceled)
}
