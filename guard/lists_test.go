package guard_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
)

func prefixes(list ...string) (ps []netip.Prefix) {
	for _, p := range list {
		ps = append(ps, netip.MustParsePrefix(p))
	}
	return ps
}

func listed(l guard.Lists) func(*guard.Config) { return func(c *guard.Config) { c.Lists = l } }

// A deny list needs no store: it is asked first, and holds while the store is down.
func TestADenyListRefusesWithoutAskingTheStore(t *testing.T) {
	l := guard.Lists{DenyAddresses: prefixes("203.0.113.0/24", "2001:db8::/32"), DenyAccounts: []string{"Root"}}
	b := newBench(t, func(c *guard.Config) {
		c.Lists, c.Store = l, brokenStore{errDown}
	}, login(accountRule(), ipRule(20)))
	for _, a := range []guard.Attempt{
		by("bob", elsewhere), by("", elsewhere), by("bob", at("::ffff:203.0.113.200")), by("bob", at("2001:db8:1::1%eth0")),
		by(" ROOT ", here), by("ⓡoot", netip.Addr{}),
	} {
		require.Equal(t, []string{guard.DeniedRule}, b.requireDenied(t, time.Hour, a).Rules)
		e := b.last()
		require.Equal(t, guard.Refused, e.Kind)
		require.Equal(t, guard.DeniedRule, e.Rule)
		require.Len(t, e.Subject, 16)
	}
	for _, a := range []guard.Attempt{by("bob", here), by("roots", here), by("bob", at("203.0.114.1"))} {
		_, err := b.Check(ctx, a)
		require.ErrorIs(t, err, guard.ErrUnavailable)
	}
}

func TestAnAllowListLiftsRulesByAddressAlone(t *testing.T) {
	pair := guard.Rule{Name: "pair", By: guard.ByIPAndAccount, Limits: window(4, 15*time.Minute), Counts: guard.Failures}
	all := guard.Rule{Name: "all", By: guard.Global, Limits: window(8, time.Hour)}
	b := newBench(t, listed(guard.Lists{AllowAddresses: prefixes("198.51.100.0/24")}), login(accountRule(), ipRule(2), pair, all))
	b.fail(t, 4, by("bob", here))
	require.Equal(t, []string{"pair"}, b.requireDenied(t, 15*time.Minute, by("bob", here)).Rules)
	b.fail(t, 1, by("bob", at("198.51.100.77")))
	require.Equal(t, []string{"account"}, b.requireDenied(t, 15*time.Minute, by("bob", at("198.51.100.78"))).Rules)
	b.fail(t, 2, by("eve", here))
	b.fail(t, 1, by("", here))
	require.Equal(t, []string{"all"}, b.requireDenied(t, time.Hour, by("carl", here)).Rules)

	status, err := b.Inspect(ctx, by("bob", here))
	require.NoError(t, err)
	for _, s := range status {
		require.Equal(t, s.Rule == "ip", s.Lifted, s.Rule)
		if s.Lifted {
			require.Zero(t, s.Used(), "nothing is charged to what is lifted")
		}
	}
	other := newBench(t, listed(guard.Lists{AllowAddresses: prefixes("198.51.100.0/24")}), login(accountRule(), ipRule(2)))
	other.fail(t, 2, by("bob", elsewhere))
	require.Equal(t, []string{"ip"}, other.requireDenied(t, 15*time.Minute, by("bob", elsewhere)).Rules)
}

// Deny lists win over allow lists, and blocks over both.
func TestDenyWinsOverAllow(t *testing.T) {
	b := newBench(t, listed(guard.Lists{DenyAddresses: prefixes("198.51.100.9/32"), AllowAddresses: prefixes("198.51.100.0/24")}), login(accountRule(), ipRule(2)))
	require.Equal(t, []string{guard.DeniedRule}, b.requireDenied(t, time.Hour, by("bob", here)).Rules)
	friend := at("198.51.100.10")
	b.fail(t, 3, by("bob", friend))
	b.mustBlock(t, ofAddress(friend), 2*time.Hour)
	require.Equal(t, []string{guard.BlockedRule}, b.requireDenied(t, 2*time.Hour, by("eve", friend)).Rules)

	status, err := b.Inspect(ctx, by("eve", here))
	require.NoError(t, err)
	require.Equal(t, guard.DeniedRule, status[0].Rule)
	require.Equal(t, guard.ByIP, status[0].By)
	require.False(t, status[0].Decision.Allowed)
	require.True(t, status[2].Lifted)
}

// An action that counts by address alone counts an allowed address by nothing, and an
// attempt that names nobody stays none.
func TestAnAllowListLeavesAttemptsWhole(t *testing.T) {
	b := newBench(t, listed(guard.Lists{AllowAddresses: prefixes("198.51.100.0/24")}),
		guard.Policy{Action: "signup", Rules: []guard.Rule{ipRule(1)}}, login(accountRule()))
	for range 5 {
		b.requireAdmitted(t, guard.Attempt{Action: "signup", IP: here})
	}
	_, err := b.Check(ctx, by("", here))
	require.ErrorIs(t, err, guard.ErrNoAccount)
}

// New lists hold for the next attempt, and what cannot be a list changes nothing.
func TestListsAreReplacedAtOnce(t *testing.T) {
	b := newBench(t, listed(guard.Lists{DenyAccounts: []string{"root"}}), login(accountRule(), ipRule(2)))
	b.requireDenied(t, time.Hour, by("root", here))
	require.NoError(t, b.SetLists(guard.Lists{DenyAccounts: []string{"eve"}}))
	b.requireDenied(t, time.Hour, by("eve", here))
	b.requireAdmitted(t, by("root", here))
	require.ErrorContains(t, b.SetLists(guard.Lists{AllowAddresses: prefixes("::/7")}), "::/7")
	b.requireDenied(t, time.Hour, by("eve", here))
	require.NoError(t, b.SetLists(guard.Lists{}))
	b.requireAdmitted(t, by("eve", here))
	require.ErrorIs(t, new(guard.Guard).SetLists(guard.Lists{}), guard.ErrNoPolicy)
}

func TestWhatIsNoListIsRefused(t *testing.T) {
	for want, l := range map[string]guard.Lists{
		"DenyAddresses has an invalid prefix":      {DenyAddresses: make([]netip.Prefix, 1)},
		"DenyAddresses has ::ffff:192.0.2.0/120":   {DenyAddresses: []netip.Prefix{netip.PrefixFrom(at("::ffff:192.0.2.0"), 120)}},
		"AllowAddresses has 0.0.0.0/0":             {AllowAddresses: prefixes("0.0.0.0/0")},
		"AllowAddresses has ::/7":                  {AllowAddresses: prefixes("::/7")},
		"DenyAccounts: entry 1 is no account name": {DenyAccounts: []string{"root", " "}},
	} {
		_, err := guard.New(guard.Config{Store: brokenStore{}, Secret: secret, Policies: []guard.Policy{login(accountRule())}, Lists: l})
		require.ErrorContains(t, err, want)
	}
	everybody := newBench(t, listed(guard.Lists{DenyAddresses: prefixes("0.0.0.0/0", "::/0")}), login(ipRule(2)))
	everybody.requireDenied(t, time.Hour, by("", here))
}
