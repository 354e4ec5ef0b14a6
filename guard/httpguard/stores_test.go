package httpguard_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/testkit"
	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/memstore"
	"authguard/limiter/redisstore"
)

// HD-09: one trace has the same fields, whatever store has counted it.
func TestFieldsAreTheSameOverEveryStore(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: testserver.Redis(t), ContextTimeoutEnabled: true, ReadTimeout: 30 * time.Second})
	defer client.Close()
	clock := testkit.NewClock(start)
	shared, err := redisstore.New(redisstore.Config{Client: client, Timeout: 30 * time.Second, Now: clock.Now})
	require.NoError(t, err)
	rules := []guard.Rule{
		{Name: "bucket", By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.TokenBucket{Capacity: 10, Refill: 3, Per: time.Second}}},
		{Name: "fixed", By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.FixedWindow{Limit: 12, Window: 7 * time.Second}}},
		{Name: "exact", By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 15, Window: 9 * time.Second}}},
		{Name: "about", By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.SlidingWindowCounter{Limit: 20, Window: 11 * time.Second}}},
	}
	var (
		guards []*guard.Guard
		edges  []*httpguard.Edge
	)
	for _, store := range []limiter.Store{memstore.New(memstore.Config{Now: clock.Now}), shared} {
		g, err := guard.New(guard.Config{Store: store, Secret: []byte("sixteen bytes or more"), Policies: []guard.Policy{{Action: "api", Rules: rules}}, Now: clock.Now})
		require.NoError(t, err)
		guards, edges = append(guards, g), append(edges, newEdge(t, g, httpguard.Draft11))
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	denials := 0
	for range 500 {
		clock.Advance(time.Duration(rnd.Int64N(1_500_000)) * time.Microsecond)
		a := guard.Attempt{Action: "api", APIKey: "k", Cost: 1 + rnd.Int64N(3)}
		want, denied := ask(t, guards[0], edges[0], a)
		got, _ := ask(t, guards[1], edges[1], a)
		require.Equal(t, want, got)
		if denied != nil {
			denials++
		}
	}
	require.NotZero(t, denials)
}
