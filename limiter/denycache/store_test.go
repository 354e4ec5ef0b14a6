package denycache_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
	"authguard/limiter"
	"authguard/limiter/denycache"
	"authguard/limiter/memstore"
)

// rig is a cache, or several, over one store, with a clock of their own and the
// usual numbers.
type rig struct {
	*testing.T
	*denycache.Store
	hub    *hub
	shared *shared
	clock  *testkit.Clock
}

func newRig(t *testing.T) *rig {
	t.Helper()
	r := &rig{T: t, hub: new(hub), clock: testkit.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	r.shared = &shared{Store: memstore.New(memstore.Config{Now: r.clock.Now}), hub: r.hub}
	r.Store = r.open(denycache.Config{})
	return r
}

func (r *rig) open(c denycache.Config) *denycache.Store {
	r.Helper()
	c.Store, c.Channel, c.Now = r.shared, r.hub, r.clock.Now
	return open(r, c)
}

func (r *rig) after(d time.Duration) {
	r.clock.Advance(d)
	r.hub.beat(0)
}

// asks is how many Takes of the store f makes.
func (r *rig) asks(f func()) int64 {
	before := r.shared.takes.Load()
	f()
	return r.shared.takes.Load() - before
}

func (r *rig) take(s limiter.Store, want bool, charges ...limiter.Charge) []limiter.Charge {
	r.Helper()
	ok, err := s.Take(ctx, charges)
	require.NoError(r, err)
	require.Equal(r, want, ok)
	return charges
}

// exhaust uses charges up, and sees them denied for as long as they need to be.
func (r *rig) exhaust(s limiter.Store, charges ...limiter.Charge) {
	r.Helper()
	for ok, err := true, error(nil); ok; {
		ok, err = s.Take(ctx, charges)
		require.NoError(r, err)
	}
	r.after(9 * time.Second)
	r.take(s, false, charges...)
	r.after(time.Second)
}

// local asks for charges, which must be denied without the store.
func (r *rig) local(s limiter.Store, charges ...limiter.Charge) []limiter.Charge {
	r.Helper()
	require.Zero(r, r.asks(func() { charges = r.take(s, false, charges...) }), "the store was asked")
	return charges
}

// remote asks for charges, of which the store must decide.
func (r *rig) remote(s limiter.Store, want bool, charges ...limiter.Charge) []limiter.Charge {
	r.Helper()
	require.EqualValues(r, 1, r.asks(func() { charges = r.take(s, want, charges...) }), "asks of the store")
	return charges
}

func TestADenialIsAnsweredHereUntilItsEnd(t *testing.T) {
	r := newRig(t)
	r.take(r, true, some("k", five, 5))
	r.remote(r, false, one("k", five))
	r.after(10*time.Second - time.Microsecond)
	r.remote(r, false, one("k", five))
	r.after(time.Microsecond)
	d := r.local(r, one("k", five))[0].Decision
	require.Equal(t, limiter.Decision{
		Limit: 5, RetryAfter: five.Window - 10*time.Second, ResetAfter: five.Window - 10*time.Second, At: r.clock.Now().UnixMicro(),
	}, d)
	require.EqualValues(t, 1, r.Stats().Local)

	// For the rest of the wait, once in ten seconds is enough.
	end := r.clock.Now().Add(d.RetryAfter)
	asked := r.asks(func() {
		for r.clock.Now().Before(end) {
			d := r.take(r, false, one("k", five))[0].Decision
			require.Equal(t, end.Sub(r.clock.Now()), d.RetryAfter)
			r.after(min(100*time.Millisecond, end.Sub(r.clock.Now())))
		}
	})
	require.EqualValues(t, 88, asked)
	r.remote(r, true, one("k", five))
	require.Zero(t, r.Stats().Keys)
}

// The last microsecond is denied here too, and not one more.
func TestTheEndIsExact(t *testing.T) {
	r := newRig(t)
	short := limiter.SlidingWindow{Limit: 5, Window: 15 * time.Second}
	r.exhaust(r, one("k", short))
	r.after(5*time.Second - time.Microsecond)
	require.Equal(t, time.Microsecond, r.local(r, one("k", short))[0].Decision.RetryAfter)
	r.after(time.Microsecond)
	r.remote(r, true, one("k", short))
}

func TestOnlyWhatDeniesEverybodyIsRemembered(t *testing.T) {
	hour := limiter.Distinct{Limit: 1, Window: time.Hour}
	member := func(name string) limiter.Charge {
		c := one("distinct", hour)
		c.Member = limiter.Member(name)
		return c
	}
	advisory := one("advisory", five)
	advisory.Advisory = 1

	r := newRig(t)
	r.take(r, true, member("a"))
	r.exhaust(r, member("b"))
	r.remote(r, false, member("b"))
	r.remote(r, true, member("a"))

	r.take(r, true, some("cost", five, 4))
	r.exhaust(r, some("cost", five, 2))
	r.remote(r, false, some("cost", five, 2))
	r.remote(r, true, one("cost", five))

	r.take(r, true, some("advisory", five, 5))
	r.remote(r, true, advisory, one("other", five))
	r.after(10 * time.Second)
	r.remote(r, true, advisory, one("other", five))
	require.Zero(t, r.Stats().Keys)
}

// A batch in which something costs more may be an error, whatever else denies.
func TestALargerCostIsAlwaysAsked(t *testing.T) {
	r := newRig(t)
	r.exhaust(r, one("k", five))
	r.remote(r, false, one("k", five), some("other", five, 5))
	_, err := r.Take(ctx, []limiter.Charge{one("k", five), some("other", five, 6)})
	require.ErrorIs(t, err, limiter.ErrCostTooHigh)
	r.local(r, one("k", five))
}

// Another end means that something was charged, which may still be refunded.
func TestADenialWithAnotherEndIsYoung(t *testing.T) {
	r := newRig(t)
	short := limiter.SlidingWindow{Limit: 5, Window: 15 * time.Second}
	r.exhaust(r, one("k", short))
	r.after(5 * time.Second)
	r.take(r.shared, true, some("k", short, 5))
	r.remote(r, false, one("k", short))
	r.after(9 * time.Second)
	r.remote(r, false, one("k", short))
	r.after(time.Second)
	r.local(r, one("k", short))
}

// A clock that runs backwards, as no process's does, is no reason to guess.
func TestAClockThatStepsBackIsAnotherQuestion(t *testing.T) {
	r := newRig(t)
	r.exhaust(r, one("k", five))
	r.after(10 * time.Second)
	r.remote(r, false, one("k", five))
	r.local(r, one("k", five))
	r.after(-2 * time.Second)
	r.remote(r, false, one("k", five))
}

func TestOtherNumbersAreAnotherQuestion(t *testing.T) {
	r := newRig(t)
	r.exhaust(r, one("k", five))
	ten := limiter.SlidingWindow{Limit: 10, Window: 15 * time.Minute}
	r.remote(r, true, one("k", ten))
	r.remote(r, false, one("k", five))

	// A charge under other numbers may set the key free: the hour's window begins.
	hour, minute := limiter.FixedWindow{Limit: 5, Window: time.Hour}, limiter.FixedWindow{Limit: 5, Window: time.Minute}
	r.exhaust(r, one("w", hour))
	r.after(50 * time.Second)
	r.take(r, false, one("w", hour))
	r.local(r, one("w", hour))
	r.remote(r, true, one("w", minute))
	r.remote(r, true, one("w", hour))
}

func TestABatchIsDeniedByWhatIsKnown(t *testing.T) {
	r := newRig(t)
	long := limiter.SlidingWindow{Limit: 1, Window: time.Hour}
	r.exhaust(r, one("account", five), one("device", long))
	charges := r.local(r, one("address", five), one("account", five), one("device", long))
	require.True(t, charges[0].Decision.NotAsked())
	require.Equal(t, r.clock.Now().UnixMicro(), charges[0].Decision.At)
	require.False(t, charges[2].Decision.Allowed)
	require.False(t, charges[2].Decision.NotAsked())
	require.Equal(t, time.Hour-10*time.Second, charges[2].Decision.RetryAfter)
	for _, c := range charges {
		require.False(t, c.Taken)
	}
	look := []limiter.Charge{one("address", five)}
	require.NoError(t, r.Peek(ctx, look))
	require.EqualValues(t, 5, look[0].Decision.Remaining, "nothing was charged")
	r.remote(r, true, one("address", five), one("somebody", five))
}

// The wait that is told is the longest, so none is remembered that would hide it.
func TestAShorterWaitNeverHidesALonger(t *testing.T) {
	hour := limiter.Distinct{Limit: 1, Window: time.Hour}
	member := one("spraying", hour)
	member.Member = limiter.Member("b")
	r := newRig(t)
	first := member
	first.Member = limiter.Member("a")
	r.take(r, true, first, some("account", five, 5))
	for range 2 {
		r.remote(r, false, one("account", five), member)
		r.after(10 * time.Second)
	}
	d := r.remote(r, false, one("account", five), member)
	require.Greater(t, d[1].Decision.RetryAfter, d[0].Decision.RetryAfter)

	// The other way round, the wait of the account is all that matters.
	quick := member
	quick.Limit, quick.Key = limiter.Distinct{Limit: 1, Window: 30 * time.Second}, "quick"
	first = quick
	first.Member = limiter.Member("a")
	r.take(r, true, first)
	r.remote(r, false, one("account", five), quick)
	r.after(10 * time.Second)
	r.remote(r, false, one("account", five), quick)
	r.local(r, one("account", five), quick)
}

func TestALockIsAnsweredHere(t *testing.T) {
	lock := limiter.Backoff{Free: 1, Base: time.Millisecond, Factor: 1, Max: 30 * time.Second, LockAfter: 2, Forget: 30 * time.Second, ForgetBeyond: time.Minute}
	r := newRig(t)
	r.take(r, true, one("k", lock))
	r.after(time.Millisecond)
	r.take(r, true, one("k", lock))
	r.remote(r, false, one("k", lock))
	locked := r.clock.Now()
	r.after(10 * time.Second)
	r.remote(r, false, one("k", lock))
	for r.clock.Now().Sub(locked) < time.Minute {
		look := []limiter.Charge{one("k", lock)}
		require.NoError(t, r.Peek(ctx, look))
		d := r.take(r, false, one("k", lock))[0].Decision
		require.Equal(t, look[0].Decision, d)
		require.True(t, d.Locked)
		r.after(time.Second / 2)
	}
	r.remote(r, true, one("k", lock))
	require.Greater(t, r.Stats().Local, uint64(80))
}

// LK-07: what one instance sets free is free for all of them, whoever refunds.
func TestWhatIsSetFreeIsFreeEverywhere(t *testing.T) {
	r := newRig(t)
	other := r.open(denycache.Config{})
	for name, free := range map[string]func(s limiter.Store, receipt []limiter.Charge) error{
		"forget": func(s limiter.Store, _ []limiter.Charge) error { return s.Forget(ctx, []string{"no other", "k"}) },
		"refund": func(s limiter.Store, receipt []limiter.Charge) error { return s.Refund(ctx, receipt) },
	} {
		for i, s := range []limiter.Store{r.Store, other, r.shared} {
			receipt := r.take(r, true, some("k", five, 5))
			r.exhaust(r, one("k", five))
			r.after(-10 * time.Second)
			r.exhaust(other, one("k", five))
			r.local(r, one("k", five))
			r.local(other, one("k", five))
			require.NoError(t, free(s, receipt), name)
			taken := r.remote(r, true, one("k", five))
			r.remote(other, true, one("k", five))
			require.NoError(t, r.Forget(ctx, []string{"k"}), "%s %d", name, i)
			require.True(t, taken[0].Taken)
		}
	}
}

// An answer that was decided before a refund may arrive after it.
func TestAnAnswerThatARefundOvertookIsNotRemembered(t *testing.T) {
	r := newRig(t)
	other := r.open(denycache.Config{})
	for name, refund := range map[string]func([]limiter.Charge) error{
		"here":      func(c []limiter.Charge) error { return r.Refund(ctx, c) },
		"elsewhere": func(c []limiter.Charge) error { return other.Refund(ctx, c) },
	} {
		receipt := r.take(r, true, some("k", five, 5))
		r.shared.hook = func() {
			r.shared.hook = nil
			require.NoError(t, refund(receipt), name)
		}
		r.remote(r, false, one("k", five))
		require.Zero(t, r.Stats().Keys, name)
		r.take(r, true, some("k", five, 5))
		r.remote(r, false, one("k", five))
		require.Equal(t, 1, r.Stats().Keys)
		require.NoError(t, r.Forget(ctx, []string{"k"}))
	}
}

// An instance knows at once what it sets free itself, and while it does so.
func TestWhatIsSetFreeHereIsFreeAtOnce(t *testing.T) {
	r := newRig(t)
	for _, free := range []func([]limiter.Charge) error{
		func(receipt []limiter.Charge) error { return r.Refund(ctx, receipt) },
		func([]limiter.Charge) error { return r.Forget(ctx, []string{"k"}) },
	} {
		receipt := r.take(r, true, some("k", five, 5))
		r.exhaust(r, one("k", five))
		r.local(r, one("k", five))
		r.shared.freeing = func(free func() error) error {
			r.remote(r, false, one("k", five))
			require.NoError(t, free())
			r.remote(r, true, one("k", five))
			return nil
		}
		require.NoError(t, free(receipt))
		require.Zero(t, r.Stats().Keys)
		require.NoError(t, r.shared.Store.Forget(ctx, []string{"k"}))

		receipt = r.take(r, true, some("k", five, 5))
		r.shared.freeing = func(free func() error) error {
			r.remote(r, false, one("k", five))
			return free()
		}
		require.NoError(t, free(receipt))
		require.Zero(t, r.Stats().Keys, "it was remembered a moment before")
		require.NoError(t, r.shared.Store.Forget(ctx, []string{"k"}))
	}
}

// Time on the way belongs to nobody: the answer here ends with the shortest that
// the denial may last, and the wait that is told is the longest.
func TestTimeOnTheWayNeverBreaksAPromise(t *testing.T) {
	r := newRig(t)
	short := limiter.SlidingWindow{Limit: 5, Window: 15 * time.Second}
	r.take(r, true, some("k", short, 5))
	r.take(r, false, one("k", short))
	r.after(9 * time.Second)
	r.shared.hook = func() { r.after(time.Second) } // after the decision
	r.take(r, false, one("k", short))
	r.shared.hook = nil
	// It was sent at 9 s and arrived at 10; the store denies until 15.
	require.Equal(t, 6*time.Second, r.local(r, one("k", short))[0].Decision.RetryAfter)
	r.after(5*time.Second - time.Microsecond)
	r.local(r, one("k", short))
	r.after(time.Microsecond)
	r.remote(r, true, one("k", short))
}

// What no channel tells is found out within ten seconds.
func TestEachKeyIsAskedAboutAgain(t *testing.T) {
	r := newRig(t)
	r.exhaust(r, one("k", five))
	r.local(r, one("k", five))
	require.NoError(t, r.shared.Store.Forget(ctx, []string{"k"})) // by hand
	r.after(9*time.Second - time.Nanosecond)
	r.local(r, one("k", five))
	r.after(time.Nanosecond)
	r.remote(r, true, one("k", five))
}

func TestNothingIsAnsweredHereInSilence(t *testing.T) {
	r := newRig(t)
	r.exhaust(r, one("k", five))
	r.clock.Advance(2*time.Second - time.Nanosecond)
	r.local(r, one("k", five))
	r.clock.Advance(time.Nanosecond)
	require.False(t, r.Stats().Live)
	r.remote(r, false, one("k", five))
	r.hub.beat(2 * time.Second) // it took its time
	r.remote(r, false, one("k", five))
	r.hub.beat(time.Second)
	r.local(r, one("k", five)) // everything was told, late
}

func TestABrokenChannelForgetsEverything(t *testing.T) {
	r := newRig(t)
	broken := make(chan error, 10)
	s := r.open(denycache.Config{Broken: func(err error) { broken <- err }})
	r.exhaust(s, one("k", five))
	r.local(s, one("k", five))
	r.hub.cut()
	require.ErrorIs(t, <-broken, errCut)
	r.remote(s, false, one("k", five))
	require.Eventually(t, func() bool { return r.hub.listening() == 2 }, 10*time.Second, time.Millisecond)
	require.True(t, s.Stats().Live)
	require.Zero(t, s.Stats().Keys)
	r.remote(s, false, one("k", five))
}

// Without Run, or before the channel lives, it only passes on.
func TestWithoutAChannelEverythingIsAsked(t *testing.T) {
	r := newRig(t)
	s, err := denycache.New(denycache.Config{Store: r.shared, Channel: r.hub, Now: r.clock.Now})
	require.NoError(t, err)
	r.exhaust(s, one("k", five))
	r.remote(s, false, one("k", five))
}

type failing struct{ limiter.Store }

var errDown = errors.New("down")

func (failing) Take(context.Context, []limiter.Charge) (bool, error) { return false, errDown }

// ST-01: an error is no denial, and a denial no error.
func TestErrorsPassThroughAndAreNotRemembered(t *testing.T) {
	r := newRig(t)
	up := r.shared.Store
	r.exhaust(r, one("k", five))
	r.shared.Store = failing{up}
	for range 3 {
		_, err := r.Take(ctx, []limiter.Charge{one("new", five)})
		require.ErrorIs(t, err, errDown)
	}
	require.Equal(t, 1, r.Stats().Keys)
	r.local(r, one("k", five))
	r.after(10 * time.Second)
	_, err := r.Take(ctx, []limiter.Charge{one("k", five)})
	require.ErrorIs(t, err, errDown)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = r.Take(gone, []limiter.Charge{one("k", five)})
	require.ErrorIs(t, err, context.Canceled)
	_, err = r.Take(ctx, []limiter.Charge{one("k", five), one("k", five)})
	require.ErrorAs(t, err, new(*limiter.ChargeError))
}

// An operator sees through.
func TestPeekAsksTheStore(t *testing.T) {
	r := newRig(t)
	r.exhaust(r, one("k", five))
	require.NoError(t, r.shared.Store.Forget(ctx, []string{"k"}))
	look := []limiter.Charge{one("k", five)}
	require.NoError(t, r.Peek(ctx, look))
	require.True(t, look[0].Decision.Allowed)
	require.Equal(t, 1, r.Stats().Keys)
}

// ME-03: a flood of keys that are denied once takes no more room than there is,
// and leaves what is in use where it is.
func TestAFloodLeavesWhatIsInUse(t *testing.T) {
	r := newRig(t)
	s := r.open(denycache.Config{MaxKeys: 1024})
	used := make([]limiter.Charge, 100)
	for i := range used {
		used[i] = one(fmt.Sprint("used", i), five)
		r.take(s, true, some(used[i].Key, five, 5))
		r.take(s, false, used[i])
	}
	use := func() (asked int64) {
		return r.asks(func() {
			for _, c := range used {
				r.take(s, false, c)
			}
		})
	}
	r.after(9 * time.Second)
	use()
	r.after(time.Second)
	require.Zero(t, use())
	once := limiter.FixedWindow{Limit: 1, Window: 24 * time.Hour}
	for round := range 20 {
		for i := range 1000 {
			key := fmt.Sprint("flood", round, " ", i)
			r.take(s, true, one(key, once))
			r.take(s, false, one(key, once))
		}
		r.after(time.Second)
		require.LessOrEqual(t, s.Stats().Keys, 1024)
		if round == 8 || round == 18 {
			use() // asked again
			continue
		}
		require.Zero(t, use(), "round %d", round)
	}
	require.Greater(t, s.Stats().Keys, 900)
	r.after(time.Minute) // nobody uses them any more
	for i := range 5000 {
		key := fmt.Sprint("another ", i)
		r.take(s, true, one(key, once))
		r.take(s, false, one(key, once))
	}
	require.Greater(t, use(), int64(50))
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	store, channel := memstore.New(memstore.Config{}), new(hub)
	for want, c := range map[string]denycache.Config{
		"denycache: Config.Store is nil": {Channel: channel},
		"denycache: Config.Channel is nil: nobody would tell what other processes set free": {Store: store},
		"denycache: Config.Settle is -1ns, want at least 0":                                 {Store: store, Channel: channel, Settle: -1},
		"denycache: Config.MaxKeys is 63, want at least 64":                                 {Store: store, Channel: channel, MaxKeys: 63},
	} {
		_, err := denycache.New(c)
		require.EqualError(t, err, want)
	}
}
