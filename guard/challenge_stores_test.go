package guard_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/internal/testkit"
	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/memcachestore"
	"authguard/limiter/redisstore"
)

// servers start one, and connect an instance of an application to it.
var servers = map[string]func(t *testing.T) (connect func(now func() time.Time) limiter.Store){
	"redis": func(t *testing.T) func(func() time.Time) limiter.Store {
		addr := testserver.Redis(t)
		return func(now func() time.Time) limiter.Store {
			client := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true})
			t.Cleanup(func() { client.Close() })
			store, err := redisstore.New(redisstore.Config{Client: client, Timeout: 30 * time.Second, Now: now})
			require.NoError(t, err)
			return store
		}
	},
	"memcached": func(t *testing.T) func(func() time.Time) limiter.Store {
		addr := testserver.Memcached(t)
		return func(now func() time.Time) limiter.Store {
			store, err := memcachestore.New(memcachestore.Config{Addrs: []string{addr}, Timeout: 30 * time.Second, Now: now})
			require.NoError(t, err)
			t.Cleanup(store.Close)
			return store
		}
	},
}

// One answer, brought many times at one instant to two instances, lets one attempt
// through: at most one over Memcached, where a crowd may be told to come again.
func TestOfParallelUsesOfAnAnswerOnePasses(t *testing.T) {
	for name, start := range servers {
		t.Run(name, func(t *testing.T) {
			connect, clock := start(t), testkit.NewClock(time.Unix(1_800_000_000, 0))
			instance := func() bench {
				return newBench(t, func(c *guard.Config) {
					wired(c)
					c.Store, c.Instances, c.Now, c.Observer = connect(clock.Now), 2, clock.Now, nil
				}, login(sprayed().Rules[2], guard.Rule{Name: "flood", By: guard.ByIP, Limits: window(900, time.Minute)}))
			}
			instances := []bench{instance(), instance()}
			d := instances[0].asked(t, by("carol", here))
			for round := range 3 {
				var passed atomic.Int64
				var wg sync.WaitGroup
				begin := make(chan struct{})
				for i := range 40 {
					wg.Go(func() {
						<-begin
						pass, err := instances[i%2].Check(ctx, with(by("carol", here), answer(d)))
						if err == nil {
							passed.Add(1)
							pass.Fail(ctx)
							return
						}
						assert.ErrorAs(t, err, new(*guard.Denied))
					})
				}
				close(begin)
				wg.Wait()
				require.LessOrEqual(t, passed.Load(), int64(1))
				if name == "redis" {
					require.EqualValues(t, 1, passed.Load(), "round %d", round)
				}
				d = instances[1].requireDenied(t, time.Hour, by("carol", here))
			}
		})
	}
}
