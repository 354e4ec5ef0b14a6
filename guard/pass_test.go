package guard_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
)

// used is how much each limit of an attempt stands charged.
func (b bench) used(t testing.TB, a guard.Attempt) []int64 {
	t.Helper()
	status, err := b.Inspect(ctx, a)
	require.NoError(t, err)
	var n []int64
	for _, s := range status {
		n = append(n, s.Used())
	}
	return n
}

func attemptsRule() guard.Rule {
	return guard.Rule{Name: "flood", By: guard.ByIP, Limits: window(300, time.Minute), Counts: guard.Attempts}
}

func TestSettling(t *testing.T) {
	a := by("bob", here)
	for _, c := range []struct {
		name   string
		settle func(*guard.Pass) error
		left   []int64 // account (failures), ip (failures), flood (attempts)
	}{
		{"success gives failures back", func(p *guard.Pass) error { return p.Succeed(ctx) }, []int64{0, 0, 1}},
		{"failure stands", func(p *guard.Pass) error { return p.Fail(ctx) }, []int64{1, 1, 1}},
		{"never settled stands", func(p *guard.Pass) error { return nil }, []int64{1, 1, 1}},
		{"our own fault is free", func(p *guard.Pass) error { return p.Cancel(ctx) }, []int64{0, 0, 0}},
		{"no room is not free for the address", func(p *guard.Pass) error { return p.Shed(ctx) }, []int64{0, 0, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil, login(accountRule(), ipRule(20), attemptsRule()))
			pass := b.requireAdmitted(t, a)
			require.NoError(t, c.settle(pass))
			require.Equal(t, c.left, b.used(t, a))
			if c.name == "never settled stands" {
				return
			}
			for range 2 { // the first settlement is the one
				require.NoError(t, pass.Cancel(ctx))
				require.NoError(t, pass.Succeed(ctx))
			}
			require.Equal(t, c.left, b.used(t, a))
		})
	}
}

// LK-09, LK-10: a success gives back its own charge and nobody else's.
func TestASuccessClearsLittle(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(5)))
	b.fail(t, 4, by("victim", here))
	require.NoError(t, b.requireAdmitted(t, by("mallory", here)).Succeed(ctx))
	require.Equal(t, []int64{4, 4}, b.used(t, by("victim", here)))
	b.fail(t, 1, by("victim", here))
	require.Equal(t, []string{"account", "ip"}, b.requireDenied(t, 15*time.Minute, by("victim", here)).Rules)
	b.requireDenied(t, 15*time.Minute, by("mallory", here))

	b = newBench(t, nil, login(accountRule(), ipRule(20)))
	b.fail(t, 4, by("bob", here))
	require.NoError(t, b.requireAdmitted(t, by("bob", here)).Succeed(ctx))
	require.Equal(t, []int64{4, 4}, b.used(t, by("bob", here)))
}

// LK-12: what a rule counts is explicit.
func TestSuccessesCountOnlyWhereAttemptsDo(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	for range 100 {
		require.NoError(t, b.requireAdmitted(t, by("bob", here)).Succeed(ctx))
	}
	strict := accountRule()
	strict.Counts = guard.Attempts
	b = newBench(t, nil, login(strict))
	for range 5 {
		require.NoError(t, b.requireAdmitted(t, by("bob", here)).Succeed(ctx))
	}
	b.requireDenied(t, 15*time.Minute, by("bob", here))
}

func TestALateSuccessGivesNothingBack(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	onTime := b.requireAdmitted(t, by("bob", here))
	b.clock.Advance(10 * time.Second)
	require.NoError(t, onTime.Succeed(ctx))
	require.Equal(t, []int64{0}, b.used(t, by("bob", here)))

	late := b.requireAdmitted(t, by("bob", here))
	b.clock.Advance(10*time.Second + time.Microsecond)
	require.NoError(t, late.Succeed(ctx))
	require.Equal(t, []int64{1}, b.used(t, by("bob", here)))
	require.Equal(t, 1, b.events.count(guard.Abandoned))
	require.Equal(t, 2, b.events.count(guard.Succeeded))
}

func TestASuccessIsRefundedThoughItsClientIsGone(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	gone, cancel := context.WithCancel(ctx)
	pass, err := b.Check(gone, by("bob", here))
	require.NoError(t, err)
	cancel()
	require.NoError(t, pass.Succeed(gone))
	require.Equal(t, []int64{0}, b.used(t, by("bob", here)))
}

func TestOneCallOfTheStoreForACheckAndNoneForAFailure(t *testing.T) {
	var spy *spyStore
	b := newBench(t, func(c *guard.Config) { spy = &spyStore{Store: c.Store}; c.Store = spy },
		login(accountRule(), ipRule(20), attemptsRule()))
	b.fail(t, 1, by("bob", here))
	require.Equal(t, 1, spy.takes)
	require.Equal(t, 0, spy.refunds)
	require.NoError(t, b.requireAdmitted(t, by("bob", here)).Succeed(ctx))
	require.Equal(t, 2, spy.takes)
	require.Equal(t, 1, spy.refunds)
	require.Equal(t, 2, spy.refunded)
}

// LK-06: recovery lifts the account's own counts and nobody else's.
func TestUnlockClearsTheAccountAndKeepsTheAddress(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(20)),
		guard.Policy{Action: "otp", Rules: []guard.Rule{accountRule()}})
	b.fail(t, 5, by(" BOB ", here))
	b.fail(t, 1, guard.Attempt{Action: "otp", Account: "bob"})
	require.NoError(t, b.Unlock(ctx, "Bob", "login"))
	require.Equal(t, []int64{0, 5}, b.used(t, by("bob", here)))
	require.Equal(t, []int64{1}, b.used(t, guard.Attempt{Action: "otp", Account: "bob"}))
	require.Equal(t, 1, b.events.count(guard.Unlocked))

	require.NoError(t, b.Unlock(ctx, "bob"))
	require.Equal(t, []int64{0}, b.used(t, guard.Attempt{Action: "otp", Account: "bob"}))
	require.ErrorIs(t, b.Unlock(ctx, "bob", "nothing"), guard.ErrNoPolicy)
	require.ErrorIs(t, b.Unlock(ctx, "  "), guard.ErrMissing)
}

func TestAPassTellsWhetherItIsSettled(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	pass := b.requireAdmitted(t, by("bob", here))
	require.False(t, pass.Settled())
	require.NoError(t, pass.Fail(ctx))
	require.True(t, pass.Settled())
}
