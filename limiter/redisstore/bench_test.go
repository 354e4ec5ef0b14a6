package redisstore_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"authguard/internal/testserver"
	"authguard/limiter"
)

// BenchmarkTake is a check of three limits on three keys, by so many callers at
// once, beside the floor of an EVALSHA that does nothing, which each caller sends
// by itself.
func BenchmarkTake(b *testing.B) {
	client := newClient(b, testserver.Redis(b))
	store := newStore(b, client, nil)
	nothing := redis.NewScript("return 1")
	if err := nothing.Load(ctx, client).Err(); err != nil {
		b.Fatal(err)
	}
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d/three-limits", callers), func(b *testing.B) {
			var n atomic.Int64
			parallel(b, callers, func() error {
				id := n.Add(1)
				charges := batch(fmt.Sprintf("ag:{a%d}", id%5000), fmt.Sprintf("ag:{b%d}", id%5000), fmt.Sprintf("ag:{c%d}", id%5000))
				charges[0].Limit = limiter.SlidingWindow{Limit: 1000, Window: 900e9}
				_, err := store.Take(ctx, charges)
				return err
			})
		})
		b.Run(fmt.Sprintf("callers=%d/bare-evalsha", callers), func(b *testing.B) {
			parallel(b, callers, func() error { return nothing.EvalSha(ctx, client, nil).Err() })
		})
	}
}

func parallel(b *testing.B, callers int, f func() error) {
	b.ReportAllocs()
	if callers == 1 {
		for b.Loop() {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
		return
	}
	b.SetParallelism(callers / runtime.GOMAXPROCS(0))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := f(); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
