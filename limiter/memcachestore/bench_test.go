package memcachestore_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/memcachestore"
)

// BenchmarkTake is a check of one limit, of three, of three that deny, and of one
// that everybody shares, beside the floor of a bare get.
func BenchmarkTake(b *testing.B) {
	addr := testserver.Memcached(b)
	store := newStore(b, memcachestore.Config{Addrs: []string{addr}})
	client := memcache.New(addr)
	client.MaxIdleConns = 64
	thousand := limiter.SlidingWindow{Limit: 1000, Window: 900e9}
	take := func(charges ...limiter.Charge) error {
		_, err := store.Take(ctx, charges)
		return err
	}
	full := one("full", limiter.FixedWindow{Limit: 1, Window: 900e9})
	if err := take(full); err != nil {
		b.Fatal(err)
	}
	var n atomic.Int64
	key := func(of string) string { return fmt.Sprint(of, n.Add(1)%5000) }
	for _, callers := range []int{1, 64} {
		for _, c := range []struct {
			name string
			f    func() error
		}{
			{"one-limit", func() error { return take(one(key("a"), thousand)) }},
			{"three-limits", func() error { return take(one(key("a"), thousand), one(key("b"), many), one(key("c"), many)) }},
			{"denied", func() error { return take(one(key("a"), thousand), one(key("b"), many), full) }},
			{"shared", func() error { return take(one("shared", many)) }},
			{"bare-get", func() error { _, err := client.Get("full"); return err }},
		} {
			b.Run(fmt.Sprintf("callers=%d/%s", callers, c.name), func(b *testing.B) {
				b.ReportAllocs()
				b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
				if callers == 1 {
					for b.Loop() {
						if err := c.f(); err != nil {
							b.Fatal(err)
						}
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if err := c.f(); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}
