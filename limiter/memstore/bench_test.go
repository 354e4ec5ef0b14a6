package memstore_test

import (
	"context"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/dchest/siphash"
	"golang.org/x/time/rate"

	"authguard/limiter"
	"authguard/limiter/memstore"
)

const million = 1_000_000

var laws = []struct {
	name  string
	limit limiter.Limit
}{
	{"bucket", limiter.TokenBucket{Capacity: 1_000_000, Refill: 1, Per: time.Second}},
	{"fixed", limiter.FixedWindow{Limit: 1_000_000, Window: time.Hour}},
	{"counter", limiter.SlidingWindowCounter{Limit: 1_000_000, Window: time.Hour}},
	{"window", limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}},
}

// BenchmarkHotKey is one charge on one key. The exact window of five refuses
// nearly always; the others admit.
func BenchmarkHotKey(b *testing.B) {
	for _, law := range laws {
		b.Run(law.name, func(b *testing.B) {
			s := memstore.New(memstore.Config{})
			take(b, s, law.limit, func() string { return "ag:{0123456789abcdef}01234567" })
		})
	}
	b.Run("x-time-rate", func(b *testing.B) {
		m := newRateMap()
		b.ReportAllocs()
		for b.Loop() {
			m.allow("ag:{0123456789abcdef}01234567")
		}
	})
}

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

// BenchmarkHash is what the hash of a key takes, and what the one before it took.
func BenchmarkHash(b *testing.B) {
	key := name(7)
	b.Run("siphash", func(b *testing.B) {
		for b.Loop() {
			siphash.Hash128(1, 2, []byte(key))
		}
	})
	b.Run("maphash twice", func(b *testing.B) {
		one, two := maphash.MakeSeed(), maphash.MakeSeed()
		for b.Loop() {
			maphash.String(one, key)
			maphash.String(two, key)
		}
	})
}

// BenchmarkMillionKeys is one charge on one of a million keys at random.
func BenchmarkMillionKeys(b *testing.B) {
	keys := names(million)
	next := func() func() string {
		r := rand.New(rand.NewPCG(1, 2))
		return func() string { return keys[r.IntN(million)] }
	}
	for _, law := range laws {
		b.Run(law.name, func(b *testing.B) {
			s := memstore.New(memstore.Config{MaxBytes: 512 << 20})
			fill(b, s, law.limit, keys)
			take(b, s, law.limit, next())
		})
	}
	b.Run("x-time-rate", func(b *testing.B) {
		m := newRateMap()
		for _, k := range keys {
			m.allow(k)
		}
		pick := next()
		b.ReportAllocs()
		for b.Loop() {
			m.allow(pick())
		}
	})
}

// BenchmarkHeapPerKey reports the bytes of heap a key takes at a million keys:
// for us everything, since no key is kept; for the map the key's text too.
func BenchmarkHeapPerKey(b *testing.B) {
	for _, law := range laws {
		b.Run(law.name, func(b *testing.B) {
			reportHeap(b, func() any {
				s := memstore.New(memstore.Config{MaxBytes: 512 << 20})
				for i := range million {
					for range 5 { // as full as the window of five gets
						s.Take(context.Background(), charge(name(i), law.limit))
					}
				}
				return s
			})
		})
	}
	b.Run("x-time-rate", func(b *testing.B) {
		reportHeap(b, func() any {
			m := newRateMap()
			for i := range million {
				m.allow(name(i))
			}
			return m
		})
	})
}

func reportHeap(b *testing.B, build func() any) {
	var perKey float64
	for b.Loop() {
		perKey = heapPerKey(build)
	}
	b.ReportMetric(perKey, "B/key")
}

func heapPerKey(build func() any) float64 {
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	kept := build()
	after := heap()
	runtime.KeepAlive(kept)
	return float64(after-before) / million
}

func take(b *testing.B, s *memstore.Store, limit limiter.Limit, key func() string) {
	ctx := context.Background()
	charges := charge("", limit)
	b.ReportAllocs()
	for b.Loop() {
		charges[0].Key = key()
		if _, err := s.Take(ctx, charges); err != nil {
			b.Fatal(err)
		}
	}
}

func fill(b *testing.B, s *memstore.Store, limit limiter.Limit, keys []string) {
	charges := charge("", limit)
	for _, k := range keys {
		charges[0].Key = k
		if _, err := s.Take(context.Background(), charges); err != nil {
			b.Fatal(err)
		}
	}
}

func charge(key string, limit limiter.Limit) []limiter.Charge {
	return []limiter.Charge{{Key: key, Limit: limit, Ask: limiter.Ask{Cost: 1}}}
}

func name(i int) string { return fmt.Sprintf("ag:{%016x}01234567", i) }

func names(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = name(i)
	}
	return keys
}

// rateMap is what people write around golang.org/x/time/rate.
type rateMap struct {
	mu sync.Mutex
	m  map[string]*rate.Limiter
}

func newRateMap() *rateMap { return &rateMap{m: map[string]*rate.Limiter{}} }

func (m *rateMap) allow(key string) bool {
	m.mu.Lock()
	l := m.m[key]
	if l == nil {
		l = rate.NewLimiter(1_000_000, 1_000_000)
		m.m[key] = l
	}
	m.mu.Unlock()
	return l.Allow()
}
