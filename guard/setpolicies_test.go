package guard_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

func failures(n int64) guard.Rule {
	r := accountRule()
	r.Limits = window(n, 15*time.Minute)
	return r
}

// New numbers hold at once, for what was counted before as well.
func TestNewPoliciesKeepWhatWasCounted(t *testing.T) {
	b := newBench(t, nil, login(failures(5)))
	require.EqualValues(t, 1, b.PoliciesVersion())
	b.fail(t, 4, by("bob", here))
	require.NoError(t, b.SetPolicies([]guard.Policy{login(failures(5))}))
	b.fail(t, 1, by("bob", here))
	b.requireDenied(t, 15*time.Minute, by("bob", here))
	require.NoError(t, b.SetPolicies([]guard.Policy{login(failures(7))}))
	b.fail(t, 2, by("bob", here))
	b.requireDenied(t, 15*time.Minute, by("bob", here))
	b.clock.Advance(10 * time.Minute)
	require.NoError(t, b.SetPolicies([]guard.Policy{login(failures(3))}))
	b.requireDenied(t, 5*time.Minute, by("bob", here))
	require.EqualValues(t, 4, b.PoliciesVersion())
	require.Equal(t, []guard.Policy{login(failures(3))}, b.Policies())
}

func TestPoliciesThatCannotBeReplaceNone(t *testing.T) {
	reauth := guard.Policy{Action: "reauth", Rules: []guard.Rule{accountRule()}}
	b := newBench(t, nil, login(failures(5)), reauth)
	shared, other := failures(5), failures(6)
	shared.Shared, other.Shared = "password", "password"
	for want, all := range map[string][]guard.Policy{
		`guard: no policy for this action "login", which cannot be dropped while attempts at it are checked`:  nil,
		`guard: no policy for this action "reauth", which cannot be dropped while attempts at it are checked`: {login(failures(3))},
		`guard: policy login has no rules`:       {login(), reauth},
		`guard: two policies for action "login"`: {login(failures(3)), login(failures(3))},
		`guard: login/account and reauth/account share "password" and differ in By, Members or Limits`: {login(shared), {Action: "reauth", Rules: []guard.Rule{other}}},
	} {
		require.EqualError(t, b.SetPolicies(all), want)
		require.EqualValues(t, 1, b.PoliciesVersion())
	}
	b.fail(t, 5, by("bob", here))
	b.requireDenied(t, 15*time.Minute, by("bob", here))
	require.ErrorIs(t, new(guard.Guard).SetPolicies([]guard.Policy{login(failures(3))}), guard.ErrNoPolicy)
	require.Zero(t, new(guard.Guard).PoliciesVersion())
}

// An action that comes with new policies is guarded from then on.
func TestANewActionIsGuarded(t *testing.T) {
	b := newBench(t, nil, login(failures(5)))
	otp := guard.Policy{Action: "otp", Rules: []guard.Rule{failures(1)}}
	a := guard.Attempt{Action: "otp", Account: "bob", IP: here}
	_, err := b.Check(ctx, a)
	require.ErrorIs(t, err, guard.ErrNoPolicy)
	require.NoError(t, b.SetPolicies([]guard.Policy{login(failures(5)), otp}))
	b.fail(t, 1, a)
	b.requireDenied(t, 15*time.Minute, a)
}

// A pass that was given before gives back what it was charged, whatever its rules
// are by now.
func TestAPassIsSettledByItsOwnPolicies(t *testing.T) {
	attempts := failures(5)
	attempts.Counts = guard.Attempts
	gone := failures(5)
	gone.Name = "renamed"
	for name, next := range map[string]guard.Rule{"fewer": failures(2), "more": failures(9), "attempts": attempts, "renamed": gone} {
		b := newBench(t, nil, login(failures(5)))
		b.fail(t, 1, by("bob", here))
		pass := b.requireAdmitted(t, by("bob", here))
		require.NoError(t, b.SetPolicies([]guard.Policy{login(next)}))
		require.NoError(t, pass.Succeed(ctx), name)
		require.NoError(t, b.SetPolicies([]guard.Policy{login(failures(5))}))
		all, err := b.Inspect(ctx, by("bob", here))
		require.NoError(t, err)
		require.EqualValues(t, 1, all[0].Used(), name)
	}
}

// RC-03: who waits for unsettled charges waits on, and is admitted by what passes
// from before give back; so is who comes after.
func TestWaitingGoesOnThroughNewPolicies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := waitingGuard(t, nil, 0, failures(5))
		var held []*guard.Pass
		for range 5 {
			pass, err := g.Check(ctx, by("bob", here))
			require.NoError(t, err)
			held = append(held, pass)
		}
		var admitted atomic.Int64
		var wg sync.WaitGroup
		check := func() {
			if pass, err := g.Check(ctx, by("bob", here)); err == nil {
				admitted.Add(1)
				pass.Succeed(ctx)
			}
		}
		began := time.Now()
		wg.Go(check)
		synctest.Wait()
		require.NoError(t, g.SetPolicies([]guard.Policy{login(failures(4))}))
		wg.Go(check)
		synctest.Wait()
		require.Zero(t, admitted.Load(), "both wait")
		time.Sleep(time.Second)
		for _, pass := range held {
			require.NoError(t, pass.Succeed(ctx))
		}
		wg.Wait()
		require.EqualValues(t, 2, admitted.Load())
		require.Equal(t, time.Second, time.Since(began))
		check()
		all, err := g.Inspect(ctx, by("bob", here))
		require.NoError(t, err)
		require.Zero(t, all[0].Used(), "nothing is left of any of them")
	})
}

// Wrong passwords that come while policies change in turns are no more than the larger
// limit, and right ones leave nothing behind.
func TestPoliciesChangeUnderLoad(t *testing.T) {
	store := memstore.New(memstore.Config{})
	events := new(recorder)
	g, err := guard.New(guard.Config{Store: store, Secret: secret, Observer: events, Policies: []guard.Policy{login(failures(5))}})
	require.NoError(t, err)
	stop := make(chan struct{})
	var changing, attempts sync.WaitGroup
	changing.Go(func() {
		for i := int64(0); ; i++ {
			select {
			case <-stop:
				return
			default:
				if err := g.SetPolicies([]guard.Policy{login(failures(3 + i%3))}); err != nil {
					panic(err)
				}
			}
		}
	})
	var failed, settled atomic.Int64
	for range 8 {
		attempts.Go(func() {
			for range 200 {
				if pass, err := g.Check(ctx, by("bob", here)); err == nil {
					failed.Add(1)
					pass.Fail(ctx)
				}
				if pass, err := g.Check(ctx, by("eve", here)); err == nil {
					settled.Add(1)
					pass.Succeed(ctx)
				}
			}
		})
	}
	attempts.Wait()
	close(stop)
	changing.Wait()
	require.GreaterOrEqual(t, failed.Load(), int64(3))
	require.LessOrEqual(t, failed.Load(), int64(5))
	require.Positive(t, settled.Load())
	require.EqualValues(t, failed.Load()+settled.Load(), events.count(guard.Admitted))
	for account, want := range map[string]int64{"bob": failed.Load(), "eve": 0} {
		require.NoError(t, g.SetPolicies([]guard.Policy{login(failures(5))}))
		all, err := g.Inspect(ctx, by(account, here))
		require.NoError(t, err)
		require.Equal(t, want, all[0].Used(), account)
	}
}

// What a process has counted by itself while the store was down is not forgotten with
// new policies.
func TestALocalBudgetStaysThroughNewPolicies(t *testing.T) {
	rule := accountRule()
	rule.OnOutage = guard.OutageLocal
	b := newBench(t, func(c *guard.Config) { c.Store = brokenStore{limiter.ErrState} }, login(rule))
	b.fail(t, 5, by("bob", here))
	require.NoError(t, b.SetPolicies([]guard.Policy{login(rule)}))
	b.requireDenied(t, 15*time.Minute, by("bob", here))
}
