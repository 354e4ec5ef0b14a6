package guard_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
)

var streak = limiter.Backoff{Free: 3, Base: 30 * time.Second, Factor: 2, Max: time.Hour, LockAfter: 6,
	Forget: 7 * 24 * time.Hour, ForgetBeyond: 90 * 24 * time.Hour}

func streakRule() guard.Rule {
	return guard.Rule{Name: "streak", By: guard.ByAccount, Shared: "password", Limits: []limiter.Limit{streak}, Counts: guard.Failures}
}

// passwordBench has two actions that check the same secret.
func passwordBench(t *testing.T) bench {
	return newBench(t, nil, login(streakRule()), guard.Policy{Action: "reauth", Rules: []guard.Rule{streakRule()}})
}

// exhaust fails until the account is locked, at the pace of the waits.
func (b bench) exhaust(t *testing.T, a guard.Attempt) (failures int) {
	t.Helper()
	for {
		pass, err := b.Check(ctx, a)
		if err == nil {
			failures++
			require.NoError(t, pass.Fail(ctx))
			continue
		}
		var denied *guard.Denied
		require.ErrorAs(t, err, &denied)
		if denied.Locked {
			return failures
		}
		b.clock.Advance(denied.RetryAfter)
	}
}

func TestAStreakLocksAndOnlyRecoveryOpensIt(t *testing.T) {
	b := passwordBench(t)
	require.Equal(t, 6, b.exhaust(t, by("bob", here)))
	for _, later := range []time.Duration{0, time.Hour, 24 * time.Hour} {
		b.clock.Advance(later)
		d := b.requireDenied(t, time.Hour, by("bob", here))
		require.True(t, d.Locked)
	}
	d := b.requireDenied(t, time.Hour, guard.Attempt{Action: "reauth", Account: "bob", IP: here})
	require.True(t, d.Locked, "the actions share the streak")
	b.requireAdmitted(t, by("alice", here))
	require.NoError(t, b.Unlock(ctx, "bob", "login"))
	b.requireAdmitted(t, by("bob", here))
	b.requireAdmitted(t, guard.Attempt{Action: "reauth", Account: "bob", IP: here})
}

func TestUnlockOfOneRule(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), streakRule()))
	b.fail(t, 3, by("bob", here))
	require.NoError(t, b.Unlock(ctx, "bob", "login/streak"))
	require.Equal(t, []int64{3, 0}, b.used(t, by("bob", here)))
	require.EqualError(t, b.Unlock(ctx, "bob", "login/nothing"), `guard: no policy for this action: login has no rule "nothing" by account`)
	require.ErrorIs(t, b.Unlock(ctx, "bob", "nothing/streak"), guard.ErrNoPolicy)
}

func TestASuccessEndsTheStreakOfAllItsActions(t *testing.T) {
	b := passwordBench(t)
	b.fail(t, 2, by("bob", here))
	require.NoError(t, b.requireAdmitted(t, guard.Attempt{Action: "reauth", Account: "bob"}).Succeed(ctx))
	require.Equal(t, []int64{0}, b.used(t, by("bob", here)))

	b.fail(t, 2, by("bob", here))
	require.NoError(t, b.requireAdmitted(t, by("bob", here)).Cancel(ctx))
	require.Equal(t, []int64{2}, b.used(t, by("bob", here)), "a cancelled attempt ends no streak")
}

// MC-06: ten accounts an hour from one address; those already tried stay open.
func TestSprayingIsBoundedByAccounts(t *testing.T) {
	rule := guard.Rule{Name: "spraying", By: guard.ByIP, Members: guard.ByAccount, Counts: guard.Failures,
		Limits: []limiter.Limit{limiter.Distinct{Limit: 10, Window: time.Hour}}}
	b := newBench(t, nil, login(rule))
	name := func(i int) string { return string([]byte{'u', byte('a' + i/26), byte('a' + i%26)}) }
	admitted := 0
	for i := range 100 {
		if b.guess(by(name(i), here)) == nil {
			admitted++
		}
	}
	require.Equal(t, 10, admitted)
	require.NoError(t, b.guess(by(name(3), here)))
	b.requireAdmitted(t, by(name(50), netip.MustParseAddr("192.0.2.1")))

	// A success takes its own account out and no other.
	pass := b.requireAdmitted(t, by(name(3), here))
	require.NoError(t, pass.Succeed(ctx))
	require.NoError(t, b.guess(by(name(50), here)))
	b.requireDenied(t, time.Hour, by(name(51), here))

	// An office of a hundred that mistypes nothing is never refused.
	b = newBench(t, nil, login(rule))
	for i := range 100 {
		require.NoError(t, b.requireAdmitted(t, by(name(i), here)).Succeed(ctx))
	}
	// All attempts without an account are one member.
	for range 20 {
		b.requireAdmitted(t, by("", here))
	}
}

// A full gate is not a failed account: nobody behind the address is refused for it.
func TestSheddingCountsNoMember(t *testing.T) {
	rule := guard.Rule{Name: "spraying", By: guard.ByIP, Members: guard.ByAccount, Counts: guard.Failures,
		Limits: []limiter.Limit{limiter.Distinct{Limit: 10, Window: time.Hour}}}
	ids := map[string]string{"bob": "17", "robert": "17", "b@example.com": "17"}
	b := newBench(t, func(c *guard.Config) {
		c.Resolve = func(_ context.Context, name string) (guard.Account, error) { return guard.Account{ID: ids[name]}, nil }
	}, login(rule))
	for i := range 30 {
		require.NoError(t, b.requireAdmitted(t, by(string(rune('a'+i)), here)).Shed(ctx))
	}
	// Aliases of one account are one member, though no rule counts by account.
	for name := range ids {
		b.requireAdmitted(t, by(name, here))
	}
	require.Equal(t, []int64{1}, b.used(t, by("bob", here)))
}

func TestRulesOfMembersStreaksAndSharing(t *testing.T) {
	store := newBench(t, nil, login(accountRule())).store
	distinct := []limiter.Limit{limiter.Distinct{Limit: 10, Window: time.Hour}}
	other := streakRule()
	other.Limits = []limiter.Limit{limiter.SlidingWindow{Limit: 3, Window: time.Hour}}
	untrusted := streakRule()
	untrusted.Clients = guard.UntrustedClients
	twice := streakRule()
	twice.Name = "again"
	for want, policies := range map[string][]guard.Policy{
		`guard: policy login: rule r: field Members is "", want account, ip, ip/BITS, ip+account, device, api_key, tenant, global or part:NAME`: {
			login(guard.Rule{Name: "r", By: guard.ByIP, Limits: distinct})},
		`guard: policy login: rule r: field Members is "account", but a sliding_window counts no members`: {
			login(guard.Rule{Name: "r", By: guard.ByIP, Members: guard.ByAccount, Limits: window(5, time.Hour)})},
		`guard: policy login: rule r: a backoff counts consecutive failures, so Counts must be failures`: {
			login(guard.Rule{Name: "r", By: guard.ByAccount, Limits: []limiter.Limit{streak}})},
		`guard: policy login: rule streak: Shared "a b" has ' ', want only a-z, 0-9 and _`: {
			login(guard.Rule{Name: "streak", By: guard.ByAccount, Shared: "a b", Counts: guard.Failures, Limits: []limiter.Limit{streak}})},
		`guard: login/streak and reauth/streak share "password" and differ in By, Members or Limits`: {
			login(streakRule()), {Action: "reauth", Rules: []guard.Rule{other}}},
		`guard: policy login: rules streak and again share "password", which is for different actions`: {
			login(streakRule(), twice)},
		`guard: login/streak and reauth/streak share "password", one for all and one for untrusted clients, which count apart`: {
			login(streakRule()), {Action: "reauth", Rules: []guard.Rule{untrusted, accountRule()}}},
	} {
		_, err := guard.New(guard.Config{Store: store, Secret: secret, Policies: policies})
		require.EqualError(t, err, want)
	}
}

// A cost that only a rule in shadow cannot hold refuses nobody.
func TestShadowRulesDoNotRefuseByCost(t *testing.T) {
	b := newBench(t, nil, login(ipRule(20), guard.Rule{Name: "shadow", By: guard.ByIP, Effect: guard.Observe, Limits: window(5, time.Minute)}))
	a := by("", here)
	a.Cost = 6
	b.requireAdmitted(t, a)
	require.Equal(t, 1, b.events.count(guard.Observed))
}
