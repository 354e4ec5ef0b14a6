package memstore_test

import (
	"context"
	"fmt"
	"testing"

	"authguard/limiter"
	"authguard/limiter/memstore"
)

// BenchmarkBatch is so many buckets on as many hot keys, in one step.
func BenchmarkBatch(b *testing.B) {
	for _, n := range []int{3, 9} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := memstore.New(memstore.Config{})
			charges := make([]limiter.Charge, n)
			for i := range charges {
				charges[i] = limiter.Charge{Key: name(i), Limit: laws[0].limit, Ask: limiter.Ask{Cost: 1}}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Take(context.Background(), charges); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
