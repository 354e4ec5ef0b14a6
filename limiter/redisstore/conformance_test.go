package redisstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/limitertest"
	"authguard/limiter/redisstore"
)

var ctx = context.Background()

// ample is more time than any call takes on a machine that stands still for seconds.
const ample = 30 * time.Second

func newClient(t testing.TB, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, ContextTimeoutEnabled: true, PoolSize: 256, DialTimeout: ample, ReadTimeout: ample})
	t.Cleanup(func() { c.Close() })
	return c
}

func newStore(t testing.TB, client redis.UniversalClient, now func() time.Time) *redisstore.Store {
	t.Helper()
	s, err := redisstore.New(redisstore.Config{Client: client, Timeout: ample, Now: now})
	require.NoError(t, err)
	return s
}

func TestConformance(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	limitertest.Store(t, func(t *testing.T, now func() time.Time) limiter.Store {
		require.NoError(t, client.FlushDB(ctx).Err())
		return newStore(t, client, now)
	})
}

// On a cluster the keys of a batch lie on several servers, which no one step covers.
func TestConformanceOnACluster(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	client := newCluster(t, cluster)
	limitertest.CompensatingStore(t, func(t *testing.T, now func() time.Time) limiter.Store {
		require.NoError(t, client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return node.FlushDB(ctx).Err() }))
		return newStore(t, client, now)
	})
}
