package guardtest_test

import (
	"context"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/guardtest"
	"authguard/limiter"
	"authguard/policies"
)

var alice = guard.Attempt{Action: "login", Account: victim, IP: netip.MustParseAddr("192.0.2.1")}

// used is how much stands charged to alice, by rule.
func used(t testing.TB, g *guard.Guard) map[string]int64 {
	t.Helper()
	status, err := g.Inspect(t.Context(), alice)
	require.NoError(t, err)
	all := map[string]int64{}
	for _, s := range status {
		all[s.Rule] = s.Used()
	}
	return all
}

func TestAnOpenStoreAdmitsEverythingAndKeepsARecord(t *testing.T) {
	store := guardtest.Open(t)
	g := store.Guard(policies.Default()...)
	wrong := func(context.Context, *guard.Pass) (bool, error) { return false, nil }
	right := func(context.Context, *guard.Pass) (bool, error) { return true, nil }
	for range 200 {
		ok, err := g.Do(t.Context(), alice, wrong)
		require.NoError(t, err)
		require.False(t, ok)
	}
	require.Len(t, store.Attempts(), 200)
	for _, charges := range store.Attempts() {
		for _, c := range charges {
			require.True(t, c.Taken)
			require.EqualValues(t, 1, c.Cost)
		}
	}
	all := used(t, g)
	require.EqualValues(t, 200, all["account"])
	require.EqualValues(t, 200, all["streak"])
	require.EqualValues(t, 200, all["flood"])
	require.EqualValues(t, 1, all["spraying"], "one account, however often")
	require.Len(t, store.Attempts(), 200, "to inspect is no attempt")

	ok, err := g.Do(t.Context(), alice, right)
	require.NoError(t, err)
	require.True(t, ok)
	all = used(t, g)
	require.EqualValues(t, 200, all["account"], "a success gives its own charge back")
	require.EqualValues(t, 0, all["streak"], "and ends the streak")
	require.EqualValues(t, 0, all["spraying"])
	require.EqualValues(t, 201, all["flood"], "where attempts are counted, it stays")

	require.NoError(t, g.Unlock(t.Context(), victim))
	require.Zero(t, used(t, g)["account"])
	events := store.Events()
	require.Len(t, events, 2*201+len(policies.Default()))
	require.Equal(t, guard.Event{Kind: guard.Admitted, Action: "login"}, events[0])
	require.Equal(t, guard.Event{Kind: guard.Failed, Action: "login"}, events[1])
	require.Equal(t, guard.Event{Kind: guard.Succeeded, Action: "login"}, events[401])
}

// A rule with effect silent denies nothing either, and tells nobody to do nothing.
func TestAnOpenStoreSilencesNobody(t *testing.T) {
	g := guardtest.Open(t).Guard(policies.Default()...)
	for range 50 {
		pass, err := g.Check(t.Context(), guard.Attempt{Action: "password_reset", Account: victim, IP: alice.IP})
		require.NoError(t, err)
		require.False(t, pass.Silenced())
	}
}

func TestWhatNoLimitAdmitsIsNotAdmitted(t *testing.T) {
	g := guardtest.Open(t).Guard(policies.Default()...)
	_, err := g.Check(t.Context(), guard.Attempt{Action: "api", APIKey: "1", Account: victim, Cost: 20})
	require.ErrorIs(t, err, limiter.ErrCostTooHigh)
	_, err = g.Check(t.Context(), guard.Attempt{Action: "unknown"})
	require.ErrorIs(t, err, guard.ErrNoPolicy)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = g.Check(ctx, alice)
	require.ErrorIs(t, err, context.Canceled)
}

func TestAStoreThatRefusesChargesNothing(t *testing.T) {
	store := guardtest.Open(t)
	g := store.Guard(policies.Default()...)
	store.Refuse(true)
	_, err := g.Check(t.Context(), alice)
	var denied *guard.Denied
	require.ErrorAs(t, err, &denied)
	require.Equal(t, time.Second, denied.RetryAfter)
	require.Contains(t, denied.Rules, "account")
	require.Contains(t, denied.Rules, "flood")
	store.Refuse(false)
	require.Zero(t, used(t, g)["account"])
	require.Len(t, store.Attempts(), 1)
	require.False(t, store.Attempts()[0][0].Taken)
	_, err = g.Check(t.Context(), alice)
	require.NoError(t, err)
}

func TestABadPolicyFailsTheTest(t *testing.T) {
	requireFailure(t, func(t testing.TB) { guardtest.Open(t).Guard() }, "guard: Config.Policies is empty")
}

// A Store that was not made by Open is no way around the limits.
func TestAZeroStoreAdmitsNothing(t *testing.T) {
	for _, store := range []*guardtest.Store{nil, {}} {
		for _, outage := range []guard.Outage{guard.OutageDeny, guard.OutageLocal} {
			g, err := guard.New(guard.Config{Store: store, Secret: make([]byte, 32), Policies: []guard.Policy{{Action: "login", Rules: []guard.Rule{
				{Name: "account", By: guard.ByAccount, OnOutage: outage, Limits: []limiter.Limit{limiter.FixedWindow{Limit: 1, Window: time.Hour}}}}}}})
			require.NoError(t, err)
			_, err = g.Check(t.Context(), alice)
			if outage == guard.OutageLocal {
				require.NoError(t, err, "the first")
				_, err = g.Check(t.Context(), alice)
				require.ErrorAs(t, err, new(*guard.Denied))
				continue
			}
			require.ErrorIs(t, err, guard.ErrUnavailable)
			_, err = g.Inspect(t.Context(), alice)
			require.ErrorIs(t, err, guard.ErrUnavailable)
			require.Error(t, g.Unlock(t.Context(), victim))
		}
	}
}

func TestOpenWorksInTestsOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), "main.go")
	require.NoError(t, os.WriteFile(file, []byte(`package main

import (
	"testing"

	"authguard/guard/guardtest"
)

func main() {
	var t testing.TB
	guardtest.Open(t)
}
`), 0o600))
	out, err := exec.CommandContext(t.Context(), "go", "run", file).CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "panic: guardtest: Open outside of a test")
}
