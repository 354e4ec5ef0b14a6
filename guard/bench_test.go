package guard_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/memstore"
	"authguard/policies"
)

// BenchmarkCheckAndSucceed is a whole login with the login preset, in memory.
// Rules that count attempts have wider numbers, which the loop does not reach.
func BenchmarkCheckAndSucceed(b *testing.B) {
	preset, err := policies.Preset("login")
	if err != nil {
		b.Fatal(err)
	}
	for i, r := range preset[0].Rules {
		if r.Counts == guard.Attempts {
			preset[0].Rules[i].Limits = []limiter.Limit{limiter.SlidingWindowCounter{Limit: limiter.MaxLimit, Window: time.Second}}
		}
	}
	someone := guard.Account{ID: "17"}
	g, err := guard.New(guard.Config{
		Store: memstore.New(memstore.Config{}), Secret: secret, Policies: preset,
		Resolve: func(context.Context, string) (guard.Account, error) { return someone, nil },
	})
	if err != nil {
		b.Fatal(err)
	}
	device, _, err := g.TrustDevice(someone, "")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, addr, device string }{
		{"ipv4", "198.51.100.9", ""}, {"ipv6", "2001:db8::1", ""}, {"device", "198.51.100.9", device},
	} {
		b.Run(c.name, func(b *testing.B) {
			a := by("someone@example.com", netip.MustParseAddr(c.addr))
			a.Device = c.device
			b.ReportAllocs()
			for b.Loop() {
				pass, err := g.Check(ctx, a)
				if err != nil {
					b.Fatal(err)
				}
				if err := pass.Succeed(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
