package guard_test

import (
	"net/netip"
	"testing"
	"time"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// BenchmarkCheckAndSucceed is a whole login under the rules of the login
// preset, in memory.
func BenchmarkCheckAndSucceed(b *testing.B) {
	counter := func(n int64, w time.Duration) []limiter.Limit {
		return []limiter.Limit{limiter.SlidingWindowCounter{Limit: n, Window: w}}
	}
	g, err := guard.New(guard.Config{
		Store:  memstore.New(memstore.Config{}),
		Secret: secret,
		Policies: []guard.Policy{login(
			guard.Rule{Name: "account", By: guard.ByAccount, Counts: guard.Failures, Limits: []limiter.Limit{
				limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}, limiter.SlidingWindow{Limit: 30, Window: 24 * time.Hour}}},
			guard.Rule{Name: "ip", By: guard.ByIP, Counts: guard.Failures, Limits: counter(100, time.Hour)},
			guard.Rule{Name: "network", By: guard.IPPrefix(48), Counts: guard.Failures, Limits: counter(400, time.Hour)},
			guard.Rule{Name: "flood", By: guard.ByIP, Limits: counter(1_000_000, time.Second)}, // more than the loop reaches
		)},
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, addr string }{{"ipv4", "198.51.100.9"}, {"ipv6", "2001:db8::1"}} {
		b.Run(c.name, func(b *testing.B) {
			a := by("someone@example.com", netip.MustParseAddr(c.addr))
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
