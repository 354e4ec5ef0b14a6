package limiter_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// password is the streak of the login preset.
var password = limiter.Backoff{Free: 10, Base: 30 * time.Second, Factor: 2, Max: time.Hour, LockAfter: 80, Forget: 7 * day, ForgetBeyond: 90 * day}

var t0 = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()

func us(d time.Duration) int64 { return d.Microseconds() }

// one asks for one unit and, if it is admitted, goes on with the new state.
func one(t testing.TB, l limiter.Limit, state []byte, now int64, member string) (limiter.Decision, []byte) {
	t.Helper()
	d, next, err := limiter.Decide(l, nil, state, now, limiter.Ask{Cost: 1, Member: member})
	require.NoError(t, err)
	if len(next) == 0 {
		next = state
	}
	return d, next
}

// A guesser who always comes back the moment that he may.
func TestBackoffDoublesAndLocks(t *testing.T) {
	var state []byte
	now := t0
	waits := map[int64]time.Duration{}
	for n := int64(1); n <= 80; n++ {
		d, next := one(t, password, state, now, "")
		if !d.Allowed {
			require.False(t, d.Locked)
			waits[n] = d.RetryAfter
			early, _ := one(t, password, state, now+us(d.RetryAfter)-1, "")
			require.False(t, early.Allowed, "a microsecond too soon")
			now += us(d.RetryAfter)
			d, next = one(t, password, state, now, "")
		}
		require.True(t, d.Allowed, "failure %d", n)
		state = next
	}
	require.NotContains(t, waits, int64(10))
	for n, want := range map[int64]time.Duration{11: 30 * time.Second, 12: time.Minute, 13: 2 * time.Minute, 17: 32 * time.Minute, 18: time.Hour, 80: time.Hour} {
		require.Equal(t, want, waits[n], "before failure %d", n)
	}
	for _, later := range []time.Duration{0, time.Hour, 30 * day, 90*day - time.Microsecond} {
		d, _ := one(t, password, state, now+us(later), "")
		require.False(t, d.Allowed)
		require.True(t, d.Locked)
		require.Equal(t, min(time.Hour, 90*day-later), d.RetryAfter)
	}
	d, _ := one(t, password, state, now+us(90*day), "")
	require.True(t, d.Allowed, "forgotten")
	require.EqualValues(t, 9, d.Remaining)
}

func TestBackoffIsForgotten(t *testing.T) {
	var state []byte
	for range 10 {
		_, state = one(t, password, state, t0, "")
	}
	d, _ := one(t, password, state, t0+us(7*day)-1, "")
	require.True(t, d.Allowed)
	require.EqualValues(t, 0, d.Remaining, "ten failures stand, and one more")
	d, _ = one(t, password, state, t0+us(7*day), "")
	require.EqualValues(t, 9, d.Remaining, "forgotten a week after the last")

	_, state = one(t, password, state, t0+us(time.Minute), "")
	d, _ = one(t, password, state, t0+us(8*day), "")
	require.EqualValues(t, 0, d.Remaining, "beyond the free ones a week does not help")
}

func TestBackoffSuccessEndsTheStreakAndACancelDoesNot(t *testing.T) {
	var state []byte
	for range 9 {
		_, state = one(t, password, state, t0, "")
	}
	d, charged := one(t, password, state, t0, "")
	require.EqualValues(t, 0, d.Remaining)
	cancelled, err := password.Refund(nil, charged, t0, d.At, limiter.Ask{Cost: 1})
	require.NoError(t, err)
	require.Equal(t, state, cancelled)
	succeeded, err := password.Refund(nil, charged, t0, d.At, limiter.Ask{Cost: limiter.MaxLimit})
	require.NoError(t, err)
	require.Empty(t, succeeded)
}

// Our own fault costs nobody a wait: a cancelled attempt leaves the streak as it
// was, and a refund that comes after the streak has ended takes nothing of the next.
func TestBackoffCancelRestoresTheWait(t *testing.T) {
	var state []byte
	now := t0
	for range 15 {
		d, next := one(t, password, state, now, "")
		if !d.Allowed {
			now += us(d.RetryAfter)
			d, next = one(t, password, state, now, "")
		}
		require.True(t, d.Allowed)
		state = next
	}
	wait, _ := one(t, password, state, now, "")
	now += us(wait.RetryAfter)
	d, charged := one(t, password, state, now, "")
	require.True(t, d.Allowed)
	back, err := password.Refund(nil, charged, now+us(time.Second), d.At, limiter.Ask{Cost: 1})
	require.NoError(t, err)
	d, _ = one(t, password, back, now+us(time.Second), "")
	require.True(t, d.Allowed, "the wait was over already")

	_, next := one(t, password, nil, now+us(2*time.Second), "") // a new streak
	kept, err := password.Refund(nil, next, now+us(3*time.Second), now, limiter.Ask{Cost: 1})
	require.NoError(t, err)
	require.Equal(t, next, kept)
}

// Random histories against a list of failures.
func TestBackoffModel(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 7))
		l := limiter.Backoff{Free: 1 + r.Int64N(5), Base: time.Duration(1+r.IntN(60)) * time.Second, Factor: 1 + r.Int64N(4),
			Max: time.Hour, Forget: 2 * time.Hour, ForgetBeyond: 5 * time.Hour}
		if r.IntN(2) == 0 {
			l.LockAfter = l.Free + 1 + r.Int64N(20)
		}
		require.NoError(t, l.Validate())
		var (
			state    []byte
			failures int64
			last     = t0
			now      = t0
			denials  int
		)
		for range 300 {
			life := l.Forget
			if failures > l.Free {
				life = l.ForgetBeyond
			}
			if failures > 0 && now-last >= us(life) {
				failures = 0
			}
			wait := int64(0)
			if failures >= l.Free {
				wait = us(l.Base)
				for range failures - l.Free {
					wait = min(wait*l.Factor, us(l.Max))
				}
			}
			locked := l.LockAfter > 0 && failures >= l.LockAfter
			want := !locked && now-last >= wait || failures == 0
			d, next := one(t, l, state, now, "")
			require.Equal(t, want, d.Allowed, "seed %d: %v: %d failures, %v after the last", seed, l, failures, time.Duration(now-last)*1000)
			require.Equal(t, locked && !want, d.Locked)
			switch {
			case want:
				failures++
				last = now
				if r.IntN(10) == 0 {
					cleared, err := l.Refund(nil, next, now, d.At, limiter.Ask{Cost: limiter.MaxLimit})
					require.NoError(t, err)
					require.Empty(t, cleared)
					next, failures = nil, 0
				}
			case locked:
				denials++
			default:
				denials++
				require.Equal(t, min(wait, us(life))-(now-last), us(d.RetryAfter))
			}
			state = next
			switch r.IntN(4) {
			case 0:
				now += us(d.RetryAfter)
			case 1:
				now += max(0, us(d.RetryAfter)-1)
			case 2:
				now += r.Int64N(us(time.Minute))
			case 3:
				if r.IntN(20) == 0 {
					now += us(d.ResetAfter)
				}
			}
		}
		require.NotZero(t, denials, "seed %d", seed)
	}
}

// When numbers change, the failures stay and are read under the new ones: nobody
// is set free by the change, and no wait is longer than the new numbers have.
func TestBackoffOldAndNewNumbersInTurns(t *testing.T) {
	young := limiter.Backoff{Free: 3, Base: time.Minute, Factor: 4, Max: 2 * time.Hour, LockAfter: 20, Forget: day, ForgetBeyond: 30 * day}
	var state []byte
	now, failures := t0, int64(0)
	for range 300 {
		l := password
		if failures%2 == 1 {
			l = young
		}
		d, next := one(t, l, state, now, "")
		switch {
		case d.Allowed:
			failures++
			require.False(t, l.LockAfter <= failures-1, "beyond the lock of %v", l)
		case d.Locked:
			require.GreaterOrEqual(t, failures, l.LockAfter)
		default:
			require.LessOrEqual(t, d.RetryAfter, l.Max)
		}
		state = next
		now += us(d.RetryAfter)
		if d.Locked {
			break
		}
	}
	require.GreaterOrEqual(t, failures, int64(20))
	require.LessOrEqual(t, failures, int64(21))
	d, _ := one(t, young, state, now, "")
	require.True(t, d.Locked, "the smaller lock holds what both have counted")
	d, _ = one(t, password, state, now, "")
	require.False(t, d.Locked)
}

func TestBackoffClockBackAndGarbage(t *testing.T) {
	var state []byte
	for range 12 {
		d, next := one(t, password, state, t0, "")
		if !d.Allowed {
			d, next = one(t, password, state, t0+us(d.RetryAfter), "")
		}
		state = next
	}
	d, mended := one(t, password, state, t0-us(time.Hour), "")
	require.False(t, d.Allowed)
	require.LessOrEqual(t, d.RetryAfter, time.Hour, "never longer than the longest wait")
	again, _ := one(t, password, mended, t0-us(time.Hour)+us(d.RetryAfter), "")
	require.True(t, again.Allowed)

	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		b := make([]byte, r.IntN(24))
		for i := range b {
			b[i] = byte(r.Uint32() >> r.IntN(32))
		}
		d, _, err := limiter.Decide(password, nil, b, t0, limiter.Ask{Cost: 1})
		if err != nil {
			require.ErrorIs(t, err, limiter.ErrState)
			continue
		}
		require.GreaterOrEqual(t, d.RetryAfter, time.Duration(0))
		require.LessOrEqual(t, d.ResetAfter, password.ForgetBeyond)
	}
}

func TestBackoffNumbers(t *testing.T) {
	for want, change := range map[string]func(*limiter.Backoff){
		"limiter: Backoff.Free is 0, want 1 to 1000000":                                                                 func(l *limiter.Backoff) { l.Free = 0 },
		"limiter: Backoff.Base is 0s, want whole microseconds from 1ms to 744h0m0s":                                     func(l *limiter.Backoff) { l.Base = 0 },
		"limiter: Backoff.Base is 2h0m0s, want at most Max, 1h0m0s":                                                     func(l *limiter.Backoff) { l.Base = 2 * time.Hour },
		"limiter: Backoff.Max is 768h0m0s, want whole microseconds from 1ms to 744h0m0s":                                func(l *limiter.Backoff) { l.Max = 32 * day },
		"limiter: Backoff.Factor is 0, want 1 to 1000":                                                                  func(l *limiter.Backoff) { l.Factor = 0 },
		"limiter: Backoff.LockAfter is 10, want more than Free (10) and at most 1000000, or 0 for never":                func(l *limiter.Backoff) { l.LockAfter = 10 },
		"limiter: Backoff.Forget is 0s, want whole microseconds from 1ms":                                               func(l *limiter.Backoff) { l.Forget = 0 },
		"limiter: Backoff.ForgetBeyond is 24h0m0s, want whole microseconds from Forget and Max, 168h0m0s, to 8784h0m0s": func(l *limiter.Backoff) { l.ForgetBeyond = day },
	} {
		l := password
		change(&l)
		require.EqualError(t, l.Validate(), want)
		_, _, err := limiter.Decide(l, nil, nil, t0, limiter.Ask{Cost: 1})
		require.EqualError(t, err, want)
	}
	_, _, err := limiter.Decide(password, nil, nil, t0, limiter.Ask{Cost: 11})
	require.ErrorIs(t, err, limiter.ErrCostTooHigh)
	require.Error(t, limiter.Backoff{}.Validate())
	_, err = password.Refund(nil, []byte("garbage"), t0, t0, limiter.Ask{Cost: 1})
	require.ErrorIs(t, err, limiter.ErrState)
}
