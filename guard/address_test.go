package guard_test

import (
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// V6-02, V6-03, V6-05, V6-06: which addresses are one client.
func TestAddressesThatAreOneClient(t *testing.T) {
	for _, c := range []struct {
		by   guard.By
		a, b string
		same bool
	}{
		{guard.ByIP, "192.0.2.1", "::ffff:192.0.2.1", true},
		{guard.ByIP, "::ffff:198.51.100.1", "::ffff:198.51.100.2", false},
		{guard.ByIP, "192.0.2.10", "192.0.2.11", false},
		{guard.ByIP, "2001:db8:1:2::1", "2001:db8:1:2:ffff::6", true},
		{guard.ByIP, "2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{guard.ByIP, "2001:DB8::1", "2001:0db8:0:0::0001", true},
		{guard.ByIP, "fe80::1%eth0", "fe80::1", true},
		{guard.IPPrefix(56), "2001:db8:1:2::1", "2001:db8:1:3::1", true},
		{guard.IPPrefix(48), "2001:db8:1:2::1", "2001:db8:1:ffff::1", true},
		{guard.IPPrefix(48), "2001:db8:1::1", "2001:db8:2::1", false},
		{guard.IPPrefix(48), "192.0.2.1", "192.0.2.2", false},
		{guard.ByIPAndAccount, "2001:db8:1:2::1", "2001:db8:1:2::2", true},
		{guard.ByIPAndAccount, "192.0.2.1", "192.0.2.2", false},
	} {
		b := newBench(t, nil, login(guard.Rule{Name: "ip", By: c.by, Limits: window(1, time.Minute)}))
		b.requireAdmitted(t, by("bob", netip.MustParseAddr(c.a)))
		_, err := b.Check(ctx, by("bob", netip.MustParseAddr(c.b)))
		if c.same {
			require.ErrorAs(t, err, new(*guard.Denied), "%s: %s and %s", c.by, c.a, c.b)
		} else {
			require.NoError(t, err, "%s: %s and %s", c.by, c.a, c.b)
		}
	}
}

// V6-07: a hundred thousand addresses of one network are one record.
func TestOneNetworkIsOneRecord(t *testing.T) {
	var store *memstore.Store
	b := newBench(t, func(c *guard.Config) {
		store = c.Store.(*memstore.Store)
	}, login(guard.Rule{Name: "ip", By: guard.ByIP, Limits: []limiter.Limit{limiter.SlidingWindowCounter{Limit: 1_000_000, Window: time.Hour}}}))
	addr := netip.MustParseAddr("2001:db8:1:2::").As16()
	for i := range 100_000 {
		addr[13], addr[14], addr[15] = byte(i>>16), byte(i>>8), byte(i)
		_, err := b.Check(ctx, by("", netip.AddrFrom16(addr)))
		require.NoError(t, err)
	}
	require.Equal(t, 1, store.Stats().Keys)
}

func TestNoAddressIsOneStrictClient(t *testing.T) {
	b := newBench(t, nil, login(ipRule(5)))
	b.fail(t, 5, by("bob", netip.Addr{}))
	b.requireDenied(t, 15*time.Minute, by("alice", netip.Addr{}))
	require.Equal(t, 6, b.events.count(guard.Unaddressed))
	for _, real := range []string{"0.0.0.0", "::", "127.0.0.1"} {
		b.requireAdmitted(t, by("bob", netip.MustParseAddr(real)))
	}
}
