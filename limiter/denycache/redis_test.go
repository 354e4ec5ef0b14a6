package denycache_test

import (
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/denycache"
	"authguard/limiter/redisstore"
)

// instance is a process with a store on Redis and a cache in front of it.
type instance struct {
	*denycache.Store
	breaks atomic.Int64
}

// server is a client of a Redis of t's own, and its URL.
func server(t *testing.T) (client *redis.Client, url string) {
	t.Helper()
	addr := testserver.Redis(t)
	client = redis.NewClient(&redis.Options{Addr: addr})
	t.Cleanup(func() { client.Close() })
	return client, "redis://" + addr + "?dial_timeout=30s&read_timeout=30s&write_timeout=30s"
}

func overRedis(t *testing.T, url string) *instance {
	t.Helper()
	client, err := redisstore.NewClient(url)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	// A test machine may be busy: a call may take its time.
	shared, err := redisstore.New(redisstore.Config{Client: client, Timeout: 30 * time.Second})
	require.NoError(t, err)
	i := new(instance)
	i.Store = open(t, denycache.Config{Store: shared, Channel: shared, Settle: time.Microsecond, Broken: func(error) { i.breaks.Add(1) }})
	return i
}

// two are two processes on one Redis.
func two(t *testing.T, url string) (a, b *instance) {
	t.Helper()
	return overRedis(t, url), overRedis(t, url)
}

// denies asks until the denial is answered locally.
func (i *instance) denies(t *testing.T, key string) {
	t.Helper()
	before, admitted := i.Stats().Local, false
	require.Eventually(t, func() bool {
		ok, err := i.Take(ctx, []limiter.Charge{one(key, five)})
		admitted = admitted || err == nil && ok
		return admitted || i.Stats().Local > before
	}, time.Minute, time.Millisecond)
	require.False(t, admitted)
}

// admits asks until key is admitted, and tells how long that took.
func (i *instance) admits(t *testing.T, key string) time.Duration {
	t.Helper()
	start := time.Now()
	require.Eventually(t, func() bool {
		ok, err := i.Take(ctx, []limiter.Charge{one(key, five)})
		return err == nil && ok
	}, 5*time.Second, time.Millisecond, "it would find out by itself after ten seconds")
	return time.Since(start)
}

func commands(t *testing.T, c *redis.Client, name string) int {
	t.Helper()
	info, err := c.Info(ctx, "commandstats").Result()
	require.NoError(t, err)
	m := regexp.MustCompile(`cmdstat_` + name + `:calls=(\d+)`).FindStringSubmatch(info)
	if m == nil {
		return 0
	}
	n, err := strconv.Atoi(m[1])
	require.NoError(t, err)
	return n
}

func TestARefusalIsNoRoundTrip(t *testing.T) {
	client, url := server(t)
	i := overRedis(t, url)
	_, err := i.Take(ctx, []limiter.Charge{some("k", five, 5)})
	require.NoError(t, err)
	i.denies(t, "k")
	before, local := commands(t, client, "evalsha"), i.Stats().Local
	for range 10_000 {
		c := []limiter.Charge{one("address", five), one("k", five)}
		ok, err := i.Take(ctx, c)
		require.NoError(t, err)
		require.False(t, ok)
		require.Positive(t, c[1].Decision.RetryAfter)
		require.LessOrEqual(t, c[1].Decision.RetryAfter, five.Window)
	}
	asked := commands(t, client, "evalsha") - before
	require.EqualValues(t, 10_000, int(i.Stats().Local-local)+asked)
	require.Less(t, asked, 100, "once in ten seconds, or when the machine stands still for two")
}

// LK-07: what is unlocked or refunded through one instance is free on the other.
func TestOverRedisWhatIsSetFreeIsFreeEverywhere(t *testing.T) {
	_, url := server(t)
	a, b := two(t, url)
	for range 10 {
		receipt := []limiter.Charge{some("k", five, 5)}
		ok, err := a.Take(ctx, receipt)
		require.NoError(t, err)
		require.True(t, ok)
		a.denies(t, "k")
		b.denies(t, "k")
		require.NoError(t, a.Refund(ctx, receipt))
		took := b.admits(t, "k")
		a.admits(t, "k")

		_, err = b.Take(ctx, []limiter.Charge{some("k", five, 3)})
		require.NoError(t, err)
		a.denies(t, "k")
		b.denies(t, "k")
		require.NoError(t, b.Forget(ctx, []string{"k"}))
		t.Logf("free elsewhere after %v and %v", took, a.admits(t, "k"))
		b.admits(t, "k")
		require.NoError(t, b.Forget(ctx, []string{"k"}))
	}
}

// When a server is silent, its last word counts for two seconds.
func TestOverRedisNothingIsAnsweredInSilence(t *testing.T) {
	client, url := server(t)
	i := overRedis(t, url)
	_, err := i.Take(ctx, []limiter.Charge{some("k", five, 5)})
	require.NoError(t, err)
	i.denies(t, "k")
	require.NoError(t, client.ClientPause(ctx, 4*time.Second).Err())
	require.Eventually(t, func() bool { return !i.Stats().Live }, time.Minute, 10*time.Millisecond)
	local := i.Stats().Local
	_, err = i.Take(ctx, []limiter.Charge{one("k", five)}) // waits for the server, or in vain
	if err == nil {
		require.Equal(t, local, i.Stats().Local)
	}
	require.Eventually(t, func() bool { return i.Stats().Live }, time.Minute, 10*time.Millisecond)
	i.denies(t, "k")
}

func TestOverRedisABrokenConnectionForgetsEverything(t *testing.T) {
	client, url := server(t)
	i := overRedis(t, url)
	_, err := i.Take(ctx, []limiter.Charge{some("k", five, 5)})
	require.NoError(t, err)
	i.denies(t, "k")
	require.NoError(t, client.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Err())
	require.NoError(t, client.Del(ctx, "k").Err()) // which nobody tells
	require.Eventually(t, func() bool { return i.breaks.Load() == 1 }, time.Minute, time.Millisecond)
	ok, err := i.Take(ctx, []limiter.Charge{one("k", five)})
	require.NoError(t, err)
	require.True(t, ok)
	require.Eventually(t, func() bool { return i.Stats().Live }, time.Minute, time.Millisecond)
	_, err = i.Take(ctx, []limiter.Charge{some("k", five, 4)})
	require.NoError(t, err)
	i.denies(t, "k")
}

// Through a failover: what was denied is so still, and what is set free by the new
// primary is told.
func TestOverRedisAFailover(t *testing.T) {
	cluster := testserver.Sentinel(t)
	url := "redis+sentinel://" + cluster.Sentinels + "/" + cluster.Name
	a, b := two(t, url)
	client, err := redisstore.NewClient(url)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	_, err = a.Take(ctx, []limiter.Charge{some("k", five, 5)})
	require.NoError(t, err)
	a.denies(t, "k")
	b.denies(t, "k")
	require.NoError(t, client.Do(ctx, "WAIT", 1, 5000).Err())
	cluster.KillPrimary()
	for _, i := range []*instance{a, b} {
		require.Eventually(t, func() bool { return i.breaks.Load() > 0 && i.Stats().Live }, 3*time.Minute, 10*time.Millisecond)
		i.denies(t, "k")
	}
	require.NoError(t, a.Forget(ctx, []string{"k"}))
	b.admits(t, "k")
	a.admits(t, "k")
}
