package guard_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
)

// flakyStore fails while it is down.
type flakyStore struct {
	limiter.Store
	down  atomic.Bool
	takes atomic.Int64
}

var errDown = errors.New("connection refused")

func (s *flakyStore) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	s.takes.Add(1)
	if s.down.Load() {
		return false, errDown
	}
	return s.Store.Take(ctx, charges)
}

func (s *flakyStore) Refund(ctx context.Context, charges []limiter.Charge) error {
	if s.down.Load() {
		return errDown
	}
	return s.Store.Refund(ctx, charges)
}

func withOutage(r guard.Rule, o guard.Outage) guard.Rule {
	r.OnOutage = o
	return r
}

func newFlakyBench(t *testing.T, instances int, rules ...guard.Rule) (bench, *flakyStore) {
	var flaky *flakyStore
	b := newBench(t, func(c *guard.Config) {
		flaky = &flakyStore{Store: c.Store}
		c.Store, c.Instances = flaky, instances
	}, login(rules...))
	return b, flaky
}

// attempts is how many of n attempts are admitted.
func (b bench) attempts(t *testing.T, n int, a guard.Attempt) (admitted int) {
	t.Helper()
	for range n {
		pass, err := b.Check(ctx, a)
		if err == nil {
			admitted++
			require.NoError(t, pass.Fail(ctx))
			continue
		}
		require.ErrorAs(t, err, new(*guard.Denied), "a denial, with its wait")
	}
	return admitted
}

// ST-05: what a rule does while the store is down is its own choice, and told.
func TestOutageDeny(t *testing.T) {
	b, store := newFlakyBench(t, 1, accountRule(), withOutage(ipRule(20), guard.OutageLocal))
	store.down.Store(true)
	_, err := b.Check(ctx, by("bob", here))
	require.ErrorIs(t, err, guard.ErrUnavailable)
	require.ErrorIs(t, err, errDown)
	require.Equal(t, 1, b.events.count(guard.Broken))
	require.Zero(t, b.events.count(guard.Degraded))
}

func TestOutageAllow(t *testing.T) {
	quota := guard.Rule{Name: "quota", By: guard.ByIP, Limits: window(5, time.Minute), OnOutage: guard.OutageAllow}
	b, store := newFlakyBench(t, 1, quota)
	store.down.Store(true)
	for range 20 {
		require.NoError(t, b.requireAdmitted(t, by("bob", here)).Succeed(ctx))
	}
	require.Equal(t, 20, b.events.count(guard.Degraded))
	store.down.Store(false)
	require.Equal(t, 5, b.attempts(t, 10, by("bob", here)))

	secretive := withOutage(accountRule(), guard.OutageAllow)
	require.EqualError(t, login(secretive).Validate(), "guard: policy login: rule account counts failures, so it guards a secret, which no outage may open: OnOutage is allow, want deny or local")
	secretive.OnOutage = 7
	require.EqualError(t, login(secretive).Validate(), "guard: policy login: rule account: OnOutage is Outage(7), want deny, local or allow")
}

// ST-07: each instance admits its share, and recovery returns to the shared counts.
func TestOutageLocalAdmitsAShare(t *testing.T) { synctest.Test(t, outageLocalAdmitsAShare) }

func outageLocalAdmitsAShare(t *testing.T) {
	for instances, share := range map[int]int{0: 5, 1: 5, 2: 2, 3: 1, 100: 1} {
		b, store := newFlakyBench(t, instances, withOutage(accountRule(), guard.OutageLocal))
		require.Equal(t, 3, b.attempts(t, 3, by("bob", here)))
		store.down.Store(true)
		require.Equal(t, share, b.attempts(t, 20, by("bob", here)), "%d instances", instances)
		d := b.requireDenied(t, 15*time.Minute, by("bob", here))
		require.Equal(t, []string{"account"}, d.Rules)
		store.down.Store(false)
		require.Equal(t, 2, b.attempts(t, 20, by("bob", here)), "the shared count goes on where it was")
	}
}

// Any number of outages gives one local budget a window.
func TestFlappingGivesNoSecondBudget(t *testing.T) {
	b, store := newFlakyBench(t, 1, withOutage(accountRule(), guard.OutageLocal))
	admitted := 0
	for i := range 40 {
		store.down.Store(i%2 == 0)
		admitted += b.attempts(t, 5, by("bob", here))
		b.clock.Advance(time.Second)
	}
	require.Equal(t, 10, admitted, "five shared and five local")
}

// A charge is settled where it was made, whatever the store does meanwhile.
func TestSettlingAcrossAnOutage(t *testing.T) {
	b, store := newFlakyBench(t, 1, withOutage(accountRule(), guard.OutageLocal))
	store.down.Store(true)
	local := b.requireAdmitted(t, by("bob", here))
	store.down.Store(false)
	require.NoError(t, local.Succeed(ctx))
	require.Equal(t, []int64{0}, b.used(t, by("bob", here)))

	shared := b.requireAdmitted(t, by("bob", here))
	store.down.Store(true)
	require.ErrorIs(t, shared.Succeed(ctx), errDown, "the unit stays lost; nothing is given back elsewhere")
	require.Equal(t, 5, b.attempts(t, 20, by("bob", here)), "the local success was refunded locally")
	store.down.Store(false)
	require.Equal(t, []int64{1}, b.used(t, by("bob", here)))
}

// ST-01: a denial never reaches the fallback, nor does a mistake or a client
// that has gone.
func TestOnlyAFaultReachesTheFallback(t *testing.T) {
	b, store := newFlakyBench(t, 1, withOutage(accountRule(), guard.OutageLocal))
	require.Equal(t, 5, b.attempts(t, 20, by("bob", here)))
	a := by("bob", here)
	a.Cost = 6
	_, err := b.Check(ctx, a)
	require.ErrorIs(t, err, limiter.ErrCostTooHigh)
	store.down.Store(true)
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err = b.Check(gone, by("bob", here))
	require.ErrorIs(t, err, context.Canceled)
	require.Zero(t, b.events.count(guard.Degraded))
}

// Nobody can choose an outage by sending too many at once, or nonsense.
func TestACrowdAndAMistakeAreNoOutage(t *testing.T) {
	quota := guard.Rule{Name: "quota", By: guard.ByIP, Limits: window(5, time.Minute), OnOutage: guard.OutageAllow}
	b := newBench(t, func(c *guard.Config) { c.Store = brokenStore{fmt.Errorf("full: %w", limiter.ErrOverloaded)} }, login(quota))
	_, err := b.Check(ctx, by("", here))
	require.ErrorIs(t, err, guard.ErrUnavailable)
	require.Zero(t, b.events.count(guard.Degraded))

	b, _ = newFlakyBench(t, 1, quota)
	for _, cost := range []int64{-1, -1 << 62} {
		a := by("", here)
		a.Cost = cost
		_, err = b.Check(ctx, a)
		require.Error(t, err)
	}
	require.Zero(t, b.events.count(guard.Degraded))
}

// A socket may end before the context whose deadline it has.
func TestADeadlineOfTheClientIsNoOutage(t *testing.T) {
	quota := guard.Rule{Name: "quota", By: guard.ByIP, Limits: window(5, time.Minute), OnOutage: guard.OutageAllow}
	b := newBench(t, func(c *guard.Config) { c.Store = brokenStore{errors.New("i/o timeout")} }, login(quota))
	hurried, cancel := context.WithTimeout(ctx, 4*time.Millisecond)
	defer cancel()
	_, err := b.Check(hurried, by("", here))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Zero(t, b.events.count(guard.Degraded))
	require.Zero(t, b.events.count(guard.Broken))
}

func TestUnlockReachesWhatWasCountedLocally(t *testing.T) {
	b, store := newFlakyBench(t, 1, withOutage(accountRule(), guard.OutageLocal))
	store.down.Store(true)
	require.Equal(t, 5, b.attempts(t, 9, by("bob", here)))
	require.NoError(t, b.Unlock(ctx, "bob"))
	require.Equal(t, 5, b.attempts(t, 9, by("bob", here)))
}

func TestSilentRulesInAnOutage(t *testing.T) {
	mails := guard.Rule{Name: "mails", By: guard.ByAccount, Effect: guard.Silent, Limits: window(3, time.Hour)}
	b, store := newFlakyBench(t, 1, mails, withOutage(ipRule(20), guard.OutageLocal))
	store.down.Store(true)
	require.True(t, b.requireAdmitted(t, by("bob", here)).Silenced(), "nothing is mailed that nobody counts")

	b, store = newFlakyBench(t, 1, withOutage(mails, guard.OutageLocal), withOutage(ipRule(20), guard.OutageLocal))
	store.down.Store(true)
	for i := range 5 {
		require.Equal(t, i >= 3, b.requireAdmitted(t, by("bob", here)).Silenced())
	}
}
