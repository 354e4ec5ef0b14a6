package limitertest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// together runs work in n goroutines that are released at one instant, and
// fails when they do not come back.
func together(t *testing.T, n int, work func(i int)) {
	t.Helper()
	var (
		ready, done sync.WaitGroup
		released    = make(chan struct{})
		finished    = make(chan struct{})
	)
	for i := range n {
		ready.Add(1)
		done.Go(func() {
			ready.Done()
			<-released
			work(i)
		})
	}
	ready.Wait()
	close(released)
	go func() { done.Wait(); close(finished) }()
	select {
	case <-finished:
	case <-time.After(time.Minute):
		t.Fatal("the goroutines wait for one another")
	}
}

// RC-01, RC-05, RC-08.
func thousandAtOnce(r *rig) {
	for round := range 5 {
		for _, limit := range oneOfEach {
			key := string(rune('a'+round)) + limit.Law()
			most := r.remaining(key, limit)
			var admitted, failed atomic.Int64
			together(r.t, 1_000, func(int) {
				switch ok, err := r.takeInTheEnd(one(key, limit)); {
				case err != nil:
					failed.Add(1)
				case ok:
					admitted.Add(1)
				}
			})
			require.Zero(r.t, failed.Load(), "errors")
			require.Equalf(r.t, most, admitted.Load(), "admitted by %v", limit)
			require.Zero(r.t, r.remaining(key, limit))
		}
	}
}

// takeInTheEnd takes, and comes again for as long as it is denied what is left,
// which a compensating store may do.
func (r *rig) takeInTheEnd(c limiter.Charge) (bool, error) {
	for {
		charges := []limiter.Charge{c}
		ok, err := r.store.Take(r.t.Context(), charges)
		if d := charges[0].Decision; ok || err != nil || !r.compensating || d.Remaining < c.Cost {
			return ok, err
		}
	}
}

// overlappingBatches has many goroutines charge several of the same keys, each
// in an order of its own. As time stands still and nothing is refunded, a batch
// may be denied only if one of its keys is full at the end, too.
func overlappingBatches(r *rig) {
	limits := map[string]limiter.Limit{
		"a": limiter.SlidingWindow{Limit: 60, Window: time.Hour},
		"b": limiter.TokenBucket{Capacity: 70, Refill: 1, Per: time.Hour},
		"c": limiter.FixedWindow{Limit: 80, Window: time.Hour},
		"d": limiter.SlidingWindowCounter{Limit: 90, Window: time.Hour},
		"e": limiter.SlidingWindow{Limit: 200, Window: time.Hour},
	}
	names := []string{"a", "b", "c", "d", "e"}
	var (
		mu     sync.Mutex
		taken  = map[string]int64{}
		denied [][]limiter.Charge
	)
	together(r.t, 64, func(i int) {
		rnd := rand.New(rand.NewPCG(uint64(i), 3))
		for range 20 {
			var charges []limiter.Charge
			for _, k := range rnd.Perm(len(names))[:2+rnd.IntN(3)] {
				charges = append(charges, one(names[k], limits[names[k]]))
			}
			ok, err := r.store.Take(r.t.Context(), charges)
			if !assert.NoError(r.t, err) {
				return
			}
			mu.Lock()
			if !ok {
				denied = append(denied, charges)
			}
			for _, c := range charges {
				assert.Equal(r.t, ok, c.Taken, "all of them or none")
				if c.Taken {
					taken[c.Key]++
				}
			}
			mu.Unlock()
		}
	})
	full := map[string]bool{}
	for name, limit := range limits {
		d := r.peek(one(name, limit))
		require.Equalf(r.t, d.Limit-taken[name], d.Remaining, "%s: what is left and what was taken", name)
		full[name] = d.Remaining == 0
	}
	require.NotEmpty(r.t, denied)
	for _, charges := range denied {
		if r.compensating { // what was held for a moment is there now
			room := true
			for _, c := range charges {
				room = room && r.remaining(c.Key, c.Limit) > 0
			}
			ok, err := r.store.Take(r.t.Context(), charges)
			require.NoError(r.t, err)
			require.Equal(r.t, room, ok, "a batch that comes again when all is quiet")
			continue
		}
		somebodyFull := false
		for _, c := range charges {
			somebodyFull = somebodyFull || full[c.Key]
		}
		require.True(r.t, somebodyFull, "a batch was denied although all of its keys have room")
	}
}

// takeAndRefund never has more units out than the limit, and none are lost.
func takeAndRefund(r *rig) {
	for _, limit := range oneOfEach {
		key := limit.Law()
		most := r.remaining(key, limit)
		var out atomic.Int64
		together(r.t, 50, func(int) {
			for range 40 {
				charges := []limiter.Charge{one(key, limit)}
				ok, err := r.store.Take(r.t.Context(), charges)
				if !assert.NoError(r.t, err) {
					return
				}
				if !ok {
					continue
				}
				assert.LessOrEqual(r.t, out.Add(1), most, "units out")
				out.Add(-1)
				assert.NoError(r.t, r.store.Refund(r.t.Context(), charges))
			}
		})
		require.Equal(r.t, most, r.remaining(key, limit), "all were given back")
	}
}
