package guard_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
)

func TestFiveFailuresThenAnHonestWait(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	for range 5 {
		b.fail(t, 1, by("bob", here))
		b.clock.Advance(time.Second)
	}
	d := b.requireDenied(t, 895*time.Second, by("bob", here))
	require.Equal(t, []string{"account"}, d.Rules)
	require.Equal(t, "guard: login/account refuses; retry after 14m55s", d.Error())
	b.clock.Advance(895*time.Second - time.Microsecond)
	b.requireDenied(t, time.Microsecond, by("bob", here))
	b.clock.Advance(time.Microsecond)
	b.requireAdmitted(t, by("bob", here))
}

// RC-01: however many at one instant, exactly five get through, on any account
// and address rule at once.
func TestParallelAttemptsAreBoundedExactly(t *testing.T) {
	for range 20 {
		b := newBench(t, nil, login(accountRule(), ipRule(100)))
		var admitted atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range 200 {
			wg.Go(func() {
				<-start
				if b.guess(by("bob", here)) == nil {
					admitted.Add(1)
				}
			})
		}
		close(start)
		wg.Wait()
		require.EqualValues(t, 5, admitted.Load())
	}
}

// LK-02, LK-05, AL-06: attempts during the wait neither prolong it nor cost
// anything on other rules (MC-02).
func TestRefusedAttemptsChargeNothing(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(20)))
	b.fail(t, 5, by("bob", here))
	for range 899 {
		b.clock.Advance(time.Second)
		_, err := b.Check(ctx, by("bob", here))
		require.ErrorAs(t, err, new(*guard.Denied))
	}
	status, err := b.Inspect(ctx, by("bob", here))
	require.NoError(t, err)
	require.EqualValues(t, 5, status[1].Used(), "the address was charged for the admitted five only")
	b.clock.Advance(time.Second)
	b.requireAdmitted(t, by("bob", here))
}

func TestDeniedNamesTheLongestWaitFirst(t *testing.T) {
	b := newBench(t, nil, login(
		guard.Rule{Name: "short", By: guard.ByIP, Limits: window(1, time.Minute)},
		guard.Rule{Name: "long", By: guard.ByAccount, Limits: []limiter.Limit{
			limiter.SlidingWindow{Limit: 1, Window: time.Hour}, limiter.SlidingWindow{Limit: 1, Window: 2 * time.Hour}}},
		guard.Rule{Name: "wide", By: guard.Global, Limits: window(2, time.Hour)},
	))
	b.fail(t, 1, by("bob", here))
	d := b.requireDenied(t, 2*time.Hour, by("bob", here))
	require.Equal(t, []string{"long", "short"}, d.Rules)
}

// OB-04, ME-06: a key holds nothing of what was submitted and has one length.
func TestKeysTellNothing(t *testing.T) {
	spy := &spyStore{}
	b := newBench(t, func(c *guard.Config) { spy.Store = c.Store; c.Store = spy }, login(accountRule(), ipRule(9)))
	b.requireAdmitted(t, by("someone@example.com", here))
	require.Len(t, spy.keys, 2)
	for _, k := range spy.keys {
		require.Regexp(t, `^ag:\{[A-Za-z0-9_-]{16}\}[A-Za-z0-9_-]{8}$`, k)
		require.NotContains(t, k, "someone")
		require.NotContains(t, k, "198")
	}
	other := newBench(t, func(c *guard.Config) {
		c.Secret = []byte("another secret of enough bytes")
		spy = &spyStore{Store: c.Store}
		c.Store = spy
	}, login(accountRule(), ipRule(9)))
	first := spy.keys
	other.requireAdmitted(t, by("someone@example.com", here))
	require.NotEqual(t, first, spy.keys, "the hash is keyed")
}

// MC-03, MC-04: rules and actions never share state, whatever is alike in them.
func TestRulesAndActionsDoNotShareState(t *testing.T) {
	twin := accountRule()
	twin.Name = "twin"
	b := newBench(t, nil, login(accountRule()), guard.Policy{Action: "other", Rules: []guard.Rule{accountRule(), twin}})
	b.fail(t, 5, by("bob", here))
	b.requireAdmitted(t, guard.Attempt{Action: "other", Account: "bob"})
	status, err := b.Inspect(ctx, guard.Attempt{Action: "other", Account: "bob"})
	require.NoError(t, err)
	require.EqualValues(t, 1, status[0].Used())
	require.NotEqual(t, "", status[0].Subject)
	require.Equal(t, status[0].Subject, status[1].Subject)
}

// MC-06: one address over many accounts, and many addresses on one account.
func TestSprayingAndBotnetsAreBounded(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(20)))
	admitted := 0
	for i := range 100 {
		if pass, err := b.Check(ctx, by(string(rune('a'+i%26))+string(rune('a'+i/26)), here)); err == nil {
			require.NoError(t, pass.Fail(ctx))
			admitted++
		}
	}
	require.Equal(t, 20, admitted)

	b = newBench(t, nil, login(accountRule(), ipRule(20)))
	admitted = 0
	for i := range 100 {
		if pass, err := b.Check(ctx, by("bob", netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}))); err == nil {
			require.NoError(t, pass.Fail(ctx))
			admitted++
		}
	}
	require.Equal(t, 5, admitted)
}

func TestEverythingThatIsZeroRefuses(t *testing.T) {
	var zero guard.Guard
	_, err := zero.Check(ctx, by("bob", here))
	require.ErrorIs(t, err, guard.ErrNoPolicy)
	_, err = (*guard.Guard)(nil).Check(ctx, by("bob", here))
	require.ErrorIs(t, err, guard.ErrNoPolicy)
	_, err = zero.Inspect(ctx, by("bob", here))
	require.ErrorIs(t, err, guard.ErrNoPolicy)
	require.Error(t, zero.Unlock(ctx, "bob"))
	require.Error(t, new(guard.Pass).Succeed(ctx))
	require.Error(t, (*guard.Pass)(nil).Fail(ctx))

	b := newBench(t, nil, login(accountRule()))
	_, err = b.Check(ctx, guard.Attempt{})
	require.ErrorIs(t, err, guard.ErrNoPolicy)
	_, err = b.Check(ctx, guard.Attempt{Action: "logn", Account: "bob"})
	require.ErrorIs(t, err, guard.ErrNoPolicy)
	require.ErrorContains(t, err, `"logn"`)
}

// MO-01: what a rule counts by must be there; nobody else is charged for it.
func TestAMissingIdentityIsAnError(t *testing.T) {
	b := newBench(t, nil, guard.Policy{Action: "api", Rules: []guard.Rule{
		{Name: "key", By: guard.ByAPIKey, Limits: window(1, time.Hour)},
		{Name: "ip", By: guard.ByIP, Limits: window(1, time.Hour)},
	}})
	for range 3 {
		_, err := b.Check(ctx, guard.Attempt{Action: "api", IP: here})
		require.ErrorIs(t, err, guard.ErrMissing)
		require.EqualError(t, err, "guard: the attempt lacks what a rule counts by: api/key counts by api_key")
	}
	b.requireAdmitted(t, guard.Attempt{Action: "api", IP: here, APIKey: "k"})

	for by, a := range map[guard.By]guard.Attempt{
		guard.ByTenant:       {Action: "x", Tenant: "acme"},
		guard.Part("order"):  {Action: "x", Parts: map[string]string{"order": "17"}},
		guard.Global:         {Action: "x"},
		guard.ByAccount:      {Action: "x", Account: "bob"},
		guard.ByIPAndAccount: {Action: "x", Account: "bob", IP: here},
		guard.IPPrefix(48):   {Action: "x", IP: here},
		guard.ByAPIKey:       {Action: "x", APIKey: "k"},
	} {
		b := newBench(t, nil, guard.Policy{Action: "x", Rules: []guard.Rule{{Name: "r", By: by, Limits: window(1, time.Hour)}}})
		b.requireAdmitted(t, a)
		b.requireDenied(t, time.Hour, a)
		if by != guard.Global && by != guard.IPPrefix(48) {
			_, err := b.Check(ctx, guard.Attempt{Action: "x", IP: here})
			require.ErrorIs(t, err, guard.ErrMissing, "%s", by)
		}
	}
}

// AC-07: a blank account has no record of its own; only its address is charged.
func TestBlankAccountChargesTheAddressOnly(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(6)))
	for _, blank := range []string{"", " ", "\u00a0", "\u200b", "bad\x00name", "\xff", string(make([]byte, 300))} {
		pass, err := b.Check(ctx, by(blank, here))
		if err == nil {
			require.Empty(t, pass.Account)
			require.NoError(t, pass.Fail(ctx))
			continue
		}
		require.ErrorAs(t, err, new(*guard.Denied))
	}
	require.Equal(t, []string{"ip"}, b.requireDenied(t, 15*time.Minute, by("", here)).Rules)
	b.requireAdmitted(t, by("bob", netip.MustParseAddr("192.0.2.1")))
}

func TestStoreFaultsRefuse(t *testing.T) {
	fault := errors.New("store is down")
	b := newBench(t, func(c *guard.Config) { c.Store = brokenStore{fault} }, login(accountRule()))
	_, err := b.Check(ctx, by("bob", here))
	require.ErrorIs(t, err, guard.ErrUnavailable)
	require.ErrorIs(t, err, fault)
	_, err = b.Inspect(ctx, by("bob", here))
	require.ErrorIs(t, err, guard.ErrUnavailable)
	require.ErrorIs(t, b.Unlock(ctx, "bob"), guard.ErrUnavailable)
	require.Equal(t, 2, b.events.count(guard.Broken), "the check and the unlock")
}

// A client that hangs up is no fault of the store.
func TestAnEndedContextIsItsOwnError(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err := b.Check(gone, by("bob", here))
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, guard.ErrUnavailable)
	require.Zero(t, b.events.count(guard.Broken))
	require.Equal(t, []int64{0}, b.used(t, by("bob", here)))
}

// AL-09: a cost that nothing will ever admit is an error, not a wait.
func TestCostAboveTheLimitIsAnError(t *testing.T) {
	b := newBench(t, nil, login(guard.Rule{Name: "ip", By: guard.ByIP, Limits: window(5, time.Minute)}))
	a := by("", here)
	a.Cost = 6
	_, err := b.Check(ctx, a)
	require.ErrorIs(t, err, limiter.ErrCostTooHigh)
	a.Cost = -1
	_, err = b.Check(ctx, a)
	require.Error(t, err)
	a.Cost = 5
	b.requireAdmitted(t, a)
	a.Cost = 0
	b.requireDenied(t, time.Minute, a)
}
