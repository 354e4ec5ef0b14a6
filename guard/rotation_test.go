package guard_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/internal/testkit"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

var nextSecret = []byte("the secret that comes after that")

// rotation has processes on one store before, while and after the secret is replaced.
type rotation struct{ old, both, renewed bench }

func newRotation(t testing.TB, p guard.Policy) rotation {
	t.Helper()
	clock := testkit.NewClock(time.Unix(1_800_000_000, 0))
	store := &spyStore{Store: memstore.New(memstore.Config{Now: clock.Now})}
	with := func(own, previous []byte) bench {
		b := newBench(t, func(c *guard.Config) {
			c.Store, c.Secret, c.PreviousSecret, c.Now = store, own, previous, clock.Now
		}, p)
		b.clock, b.store = clock, store
		return b
	}
	return rotation{with(secret, nil), with(nextSecret, secret), with(nextSecret, nil)}
}

func TestARotationIsNoAmnesty(t *testing.T) {
	spraying := guard.Rule{Name: "spraying", By: guard.ByIP, Members: guard.ByAccount, Counts: guard.Failures,
		Limits: []limiter.Limit{limiter.Distinct{Limit: 5, Window: 15 * time.Minute}}}
	for name, rule := range map[string]guard.Rule{"window": accountRule(), "members": spraying} {
		r := newRotation(t, login(rule))
		account := func(i int) string {
			if name == "members" {
				return fmt.Sprint("user", i)
			}
			return "bob"
		}
		for i := range 5 {
			r.old.fail(t, 1, by(account(i), here))
		}
		r.both.requireDenied(t, 15*time.Minute, by(account(5), here))
		all, err := r.both.Inspect(ctx, by(account(5), here))
		require.NoError(t, err)
		require.Len(t, all, 1, "one limit, whatever number of secrets it is counted under")
		require.EqualValues(t, 5, all[0].Used())
		r.both.clock.Advance(15 * time.Minute)
		r.both.requireAdmitted(t, by(account(5), here))
	}

	r := newRotation(t, login(streakRule()))
	r.old.exhaust(t, by("bob", here))
	_, err := r.both.Check(ctx, by("bob", here))
	var denied *guard.Denied
	require.ErrorAs(t, err, &denied)
	require.True(t, denied.Locked)
	require.Equal(t, []string{"streak"}, denied.Rules)
	require.Len(t, denied.Limits(), 1)
	require.True(t, denied.Limits()[0].Decision.Locked)
}

// In a rolling deploy each process counts what every other has counted: as it comes,
// and as the previous secret goes a window after the last process that had no other.
func TestARollingRotationHoldsTheBoundExactly(t *testing.T) {
	const window = 15 * time.Minute
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		r := newRotation(t, login(accountRule()))
		began := r.old.clock.Now()
		var failures []time.Time
		denials := 0
		for now := began; now.Sub(began) < 4*window; now = r.old.clock.Now() {
			processes := []bench{r.old, r.both}
			switch at := now.Sub(began); {
			case at >= 2*window:
				processes = []bench{r.both, r.renewed}
			case at >= window:
				processes = []bench{r.both}
			}
			standing := 0
			for _, f := range failures {
				if now.Sub(f) < window {
					standing++
				}
			}
			pass, err := processes[rnd.IntN(len(processes))].Check(ctx, by("bob", here))
			require.Equal(t, standing < 5, err == nil, "seed %d, %v after the start with %d failures: %v", seed, now.Sub(began), standing, err)
			switch {
			case err != nil:
				denials++
			case rnd.IntN(4) == 0:
				require.NoError(t, pass.Succeed(ctx))
			default:
				require.NoError(t, pass.Fail(ctx))
				failures = append(failures, now)
			}
			r.old.clock.Advance(time.Duration(rnd.Int64N(int64(2*time.Minute)) + 1))
		}
		require.Positive(t, denials)
	}
}

// Both charges of a limit are made in one call, and given back in one.
func TestARotationCostsNoRoundTrip(t *testing.T) {
	r := newRotation(t, login(accountRule(), ipRule(100), streakRule()))
	spy := r.both.store.(*spyStore)
	pass := r.both.requireAdmitted(t, by("bob", here))
	require.Equal(t, 1, spy.takes)
	require.Len(t, spy.keys, 6)
	require.Len(t, pass.Limits(), 3)
	require.NoError(t, pass.Succeed(ctx))
	require.Equal(t, 1, spy.refunds)
	require.Equal(t, 6, spy.refunded)
	for _, b := range []bench{r.old, r.both, r.renewed} {
		all, err := b.Inspect(ctx, by("bob", here))
		require.NoError(t, err)
		require.Len(t, all, 3)
		for _, s := range all {
			require.Zero(t, s.Used(), s.Rule)
		}
	}
}

// LK-06, LK-07: what is lifted is lifted under both secrets.
func TestUnlockDuringARotation(t *testing.T) {
	r := newRotation(t, login(accountRule()))
	r.old.fail(t, 3, by("bob", here))
	r.both.fail(t, 2, by("bob", here))
	r.both.requireDenied(t, 15*time.Minute, by("bob", here))
	require.NoError(t, r.both.Unlock(ctx, "bob"))
	for _, b := range []bench{r.old, r.both, r.renewed} {
		require.NoError(t, b.requireAdmitted(t, by("bob", here)).Succeed(ctx))
	}
}

// The events of an attempt name its subject as under the new secret alone.
func TestASubjectHasOneNameDuringARotation(t *testing.T) {
	r := newRotation(t, login(accountRule()))
	r.old.fail(t, 5, by("bob", here))
	r.both.requireDenied(t, 15*time.Minute, by("bob", here))
	r.both.clock.Advance(15 * time.Minute)
	r.renewed.fail(t, 5, by("bob", here))
	r.renewed.requireDenied(t, 15*time.Minute, by("bob", here))
	subject := func(b bench) (s string) {
		for _, e := range b.events.events {
			if e.Kind == guard.Refused {
				require.Empty(t, s, "told once")
				s = e.Subject
			}
		}
		return s
	}
	require.NotEmpty(t, subject(r.both))
	require.Equal(t, subject(r.renewed), subject(r.both))
}

// RC-03: right passwords wait for one another under two secrets as under one, also
// where only the old key is full of what a process with the old secret has charged.
func TestRightPasswordsWaitDuringARotation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		with := func(own, previous []byte) *guard.Guard {
			g, err := guard.New(guard.Config{Store: store, Secret: own, PreviousSecret: previous, Instances: 2, Policies: []guard.Policy{login(accountRule(), ipRule(100))}})
			require.NoError(t, err)
			return g
		}
		old, both := with(secret, nil), with(nextSecret, secret)
		admitted, _ := atOnce(30, func(int) *guard.Guard { return both }, true)
		require.EqualValues(t, 30, admitted)

		var held []*guard.Pass
		for range 5 {
			pass, err := old.Check(ctx, by("bob", here))
			require.NoError(t, err)
			held = append(held, pass)
		}
		time.AfterFunc(100*time.Millisecond, func() { held[0].Succeed(ctx) })
		begin := time.Now()
		_, err := both.Check(ctx, by("bob", here))
		require.NoError(t, err)
		require.Equal(t, 250*time.Millisecond, time.Since(begin))
	})
}

func TestARotationNeedsTwoSecrets(t *testing.T) {
	_, err := guard.New(guard.Config{Store: memstore.New(memstore.Config{}), Secret: secret, PreviousSecret: secret, Policies: []guard.Policy{login(accountRule())}})
	require.EqualError(t, err, "guard: Config.PreviousSecret is the same as Secret")
}

// What is counted locally while the store is down holds during a rotation, too.
func TestAnOutageDuringARotation(t *testing.T) {
	rule := accountRule()
	rule.OnOutage = guard.OutageLocal
	b := newBench(t, func(c *guard.Config) {
		c.Store, c.PreviousSecret, c.Secret = brokenStore{limiter.ErrState}, secret, nextSecret
	}, login(rule))
	b.fail(t, 5, by("bob", here))
	d := b.requireDenied(t, 15*time.Minute, by("bob", here))
	require.Equal(t, []string{"account"}, d.Rules)
}

// The right to be forgotten: nothing of the account is left, neither under its id nor
// under its name, from before it had one; addresses keep their counts.
func TestErase(t *testing.T) {
	known := people{}
	clock := testkit.NewClock(time.Unix(1_800_000_000, 0))
	store := memstore.New(memstore.Config{Now: clock.Now})
	with := func(own, previous []byte) bench {
		return newBench(t, func(c *guard.Config) {
			c.Store, c.Secret, c.PreviousSecret, c.Now = store, own, previous, clock.Now
			known.resolve(c)
		}, login(accountRule(), streakRule()), guard.Policy{Action: "otp", Rules: []guard.Rule{accountRule()}})
	}
	old, both := with(secret, nil), with(nextSecret, secret)
	otp := guard.Attempt{Action: "otp", Account: "bob", IP: here}
	for _, id := range []string{"", "7"} {
		known["bob"] = guard.Account{ID: id}
		old.fail(t, 1, by("bob", here))
		both.fail(t, 1, by("bob", here))
		both.fail(t, 1, otp)
	}
	other := netip.MustParseAddr("192.0.2.1")
	both.fail(t, 1, by("eve", other))
	before := store.Stats().Keys
	require.NoError(t, both.Erase(ctx, " BOB "))
	require.Equal(t, 4, store.Stats().Keys, "eve's two limits, under two secrets, of %d", before)
	require.Positive(t, both.events.count(guard.Unlocked))
	require.ErrorIs(t, both.Erase(ctx, ""), guard.ErrMissing)
	require.ErrorIs(t, (*guard.Guard)(nil).Erase(ctx, "bob"), guard.ErrNoPolicy)
}
