package denycache_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
	"authguard/limiter/denycache"
	"authguard/limiter/memstore"
)

// known is a batch of n charges, the last of which is known to be denied, and a
// cache whose channel lives on.
func known(t testing.TB, n int) (*denycache.Store, []limiter.Charge) {
	t.Helper()
	h := new(hub)
	s := open(t, denycache.Config{Store: memstore.New(memstore.Config{}), Channel: h, Settle: time.Nanosecond})
	charges := make([]limiter.Charge, n)
	for i := range charges {
		charges[i] = one(fmt.Sprintf("ag:{0123456789abcdef}0123456%d", i), five)
	}
	last := charges[n-1:]
	for range 6 {
		_, err := s.Take(ctx, last)
		require.NoError(t, err)
	}
	beating, stop := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(beating)
		for {
			h.beat(0)
			select {
			case <-time.After(100 * time.Millisecond):
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() {
		close(stop)
		<-beating
	})
	return s, charges
}

func TestARefusalAllocatesNothing(t *testing.T) {
	s, charges := known(t, 3)
	before := s.Stats().Local
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		ok, err := s.Take(ctx, charges)
		require.False(t, ok)
		require.NoError(t, err)
	}))
	require.Positive(t, s.Stats().Local-before)
}

// BenchmarkRefused is a refusal that needs no store: of one limit, and of three.
func BenchmarkRefused(b *testing.B) {
	for _, n := range []int{1, 3} {
		b.Run(fmt.Sprintf("charges=%d", n), func(b *testing.B) {
			s, charges := known(b, n)
			before := s.Stats().Local
			b.ReportAllocs()
			for b.Loop() {
				if ok, err := s.Take(ctx, charges); ok || err != nil {
					b.Fatal(ok, err)
				}
			}
			require.Positive(b, s.Stats().Local-before)
		})
	}
}
