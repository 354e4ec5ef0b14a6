package redisstore_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/redisstore"
)

var five = limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}

func batch(keys ...string) []limiter.Charge {
	limits := []limiter.Limit{five, limiter.SlidingWindowCounter{Limit: 300, Window: time.Minute}, limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Second}}
	charges := make([]limiter.Charge, len(keys))
	for i, k := range keys {
		charges[i] = limiter.Charge{Key: k, Limit: limits[i%len(limits)], Ask: limiter.Ask{Cost: 1}}
	}
	return charges
}

// calls counts commands by name, as the server does.
func calls(t testing.TB, c *redis.Client) map[string]int {
	t.Helper()
	info, err := c.Info(ctx, "commandstats").Result()
	require.NoError(t, err)
	return called(info)
}

// called is the same of what a server has told.
func called(info string) map[string]int {
	n := map[string]int{}
	for _, m := range regexp.MustCompile(`cmdstat_([a-z|]+):calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		n[m[1]], _ = strconv.Atoi(m[2])
	}
	return n
}

func TestACheckIsOneCommand(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	charges := batch("a", "b", "c")
	_, err := s.Take(ctx, charges) // brings the script
	require.NoError(t, err)
	before := calls(t, client)
	for range 100 {
		_, err := s.Take(ctx, charges)
		require.NoError(t, err)
	}
	after := calls(t, client)
	require.Equal(t, 100, after["evalsha"]-before["evalsha"])
	require.Equal(t, before["eval"], after["eval"])
	require.NoError(t, s.Refund(ctx, charges))
}

// What is lost of the server's scripts heals by itself, and charges once.
func TestScriptsComeBack(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	for i := range 4 {
		charges := batch("k")
		ok, err := s.Take(ctx, charges)
		require.NoError(t, err)
		require.True(t, ok)
		require.EqualValues(t, 4-i, charges[0].Decision.Remaining)
		require.NoError(t, client.ScriptFlush(ctx).Err())
	}
	charges := batch("k")
	require.NoError(t, s.Peek(ctx, charges))
	require.EqualValues(t, 1, charges[0].Decision.Remaining)
}

// TM-05: a key lives as long as its law needs it, and no longer.
func TestKeysLiveAsLongAsTheLawNeedsThem(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	for _, window := range []time.Duration{time.Second, time.Minute, 15 * time.Minute, 24 * time.Hour, 31 * 24 * time.Hour} {
		for _, limit := range []limiter.Limit{
			limiter.SlidingWindow{Limit: 5, Window: window},
			limiter.FixedWindow{Limit: 5, Window: window},
			limiter.TokenBucket{Capacity: 5, Refill: 5, Per: window},
			limiter.SlidingWindowCounter{Limit: 5, Window: min(window, limiter.MaxWindow/2)},
		} {
			key := fmt.Sprint(limit.Law(), window)
			c := []limiter.Charge{{Key: key, Limit: limit, Ask: limiter.Ask{Cost: 1}}}
			_, err := s.Take(ctx, c)
			require.NoError(t, err)
			ttl := client.PTTL(ctx, key).Val()
			require.Greater(t, ttl, time.Duration(0), key)
			require.LessOrEqual(t, ttl, c[0].Decision.ResetAfter+time.Millisecond, key)
			require.Greater(t, ttl, c[0].Decision.ResetAfter-5*time.Second, key)
		}
	}
}

// ME-01: what nobody touches any more goes by itself.
func TestNothingIsLeftBehind(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	for i := range 100 {
		_, err := s.Take(ctx, []limiter.Charge{{Key: fmt.Sprint(i), Limit: limiter.SlidingWindow{Limit: 5, Window: 100 * time.Millisecond}, Ask: limiter.Ask{Cost: 1}}})
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool { return client.DBSize(ctx).Val() == 0 }, time.Minute, 20*time.Millisecond)
}

// TM-01, ME-05: a key that lost its TTL gets one, whatever touches it.
func TestAMissingTTLIsAdded(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	fill := batch("k")
	for range 5 {
		_, err := s.Take(ctx, fill)
		require.NoError(t, err)
	}
	for name, touch := range map[string]func() error{
		"a denial": func() error { _, err := s.Take(ctx, batch("k")); return err },
		"a look":   func() error { return s.Peek(ctx, batch("k")) },
		"a refund": func() error { return s.Refund(ctx, fill) },
		"a charge": func() error { _, err := s.Take(ctx, batch("k")); return err },
	} {
		require.NoError(t, client.Persist(ctx, "k").Err(), name)
		require.NoError(t, touch(), name)
		ttl := client.PTTL(ctx, "k").Val()
		require.Greater(t, ttl, time.Duration(0), name)
		require.LessOrEqual(t, ttl, 15*time.Minute+time.Millisecond, name)
	}
}

// In a rolling deploy the shorter window does not take away what the longer needs.
func TestATTLIsNeverShortened(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	for _, window := range []time.Duration{time.Hour, time.Minute} {
		_, err := s.Take(ctx, []limiter.Charge{{Key: "k", Limit: limiter.SlidingWindow{Limit: 5, Window: window}, Ask: limiter.Ask{Cost: 1}}})
		require.NoError(t, err)
		require.Greater(t, client.PTTL(ctx, "k").Val(), 59*time.Minute)
	}
}

// A value that is not ours is that key's error, and goes away by itself.
func TestAnAlienValueIsThatKeysError(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	require.NoError(t, client.LPush(ctx, "list", "x").Err())
	require.NoError(t, client.Set(ctx, "garbage", "not a log", 0).Err())
	for _, key := range []string{"list", "garbage"} {
		charges := batch("good", key)
		charges[1].Limit = five
		ok, err := s.Take(ctx, charges)
		require.False(t, ok)
		require.ErrorIs(t, err, limiter.ErrState)
		var which *limiter.ChargeError
		require.ErrorAs(t, err, &which)
		require.Equal(t, 1, which.Index)
		require.ErrorIs(t, s.Peek(ctx, charges), limiter.ErrState)
		require.Greater(t, client.PTTL(ctx, key).Val(), time.Duration(0))
	}
	look := batch("good")
	require.NoError(t, s.Peek(ctx, look))
	require.EqualValues(t, 5, look[0].Decision.Remaining, "nothing was charged beside it")
}

// A server that does not answer costs the deadline and no more.
func TestADeadlineCutsEveryCall(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s, err := redisstore.New(redisstore.Config{Client: client, Timeout: 100 * time.Millisecond})
	require.NoError(t, err)
	charges := batch("a", "b")
	_, err = s.Take(ctx, charges)
	require.NoError(t, err)
	require.NoError(t, client.ClientPause(ctx, time.Minute).Err())
	for name, call := range map[string]func() error{
		"take":   func() error { _, err := s.Take(ctx, batch("a", "b")); return err },
		"peek":   func() error { return s.Peek(ctx, batch("a", "b")) },
		"refund": func() error { return s.Refund(ctx, charges) },
		"forget": func() error { return s.Forget(ctx, []string{"a"}) },
	} {
		start := time.Now()
		require.Error(t, call(), name)
		require.Less(t, time.Since(start), 30*time.Second, name)
	}
}

func TestNewRefusesAnUnsafeClient(t *testing.T) {
	contexts := redis.Options{ContextTimeoutEnabled: true}
	cluster := func(o redis.ClusterOptions) redis.UniversalClient { return redis.NewClusterClient(&o) }
	for want, client := range map[string]redis.UniversalClient{
		"redisstore: Config.Client is nil":   nil,
		"redisstore: Config.Client is nil ":  (*redis.Client)(nil),
		"redisstore: Config.Client is nil\t": (*redis.ClusterClient)(nil),
		"ContextTimeoutEnabled is false":     redis.NewClient(&redis.Options{}),
		"ContextTimeoutEnabled is false: a":  cluster(redis.ClusterOptions{}),
		"RouteByLatency is true":             cluster(redis.ClusterOptions{ContextTimeoutEnabled: true, RouteByLatency: true}),
		"RouteRandomly is true":              cluster(redis.ClusterOptions{ContextTimeoutEnabled: true, RouteRandomly: true}),
		"ReadOnly is true":                   cluster(redis.ClusterOptions{ContextTimeoutEnabled: true, ReadOnly: true}),
		"Config.Client is a *redis.Ring, want *redis.Client or *redis.ClusterClient": redis.NewRing(&redis.RingOptions{}),
	} {
		_, err := redisstore.New(redisstore.Config{Client: client})
		require.ErrorContains(t, err, strings.TrimSpace(want))
	}
	client := redis.NewClient(&contexts)
	defer client.Close()
	_, err := redisstore.New(redisstore.Config{Client: client, Timeout: -1})
	require.EqualError(t, err, "redisstore: Config.Timeout is -1ns, want at least 0")
}

// A reply that is lost on the way leaves the charge standing, once: a client
// that retries would charge again and again.
func TestALostReplyChargesOnce(t *testing.T) {
	server := testserver.Redis(t)
	direct := newStore(t, newClient(t, server), nil)
	_, err := direct.Take(ctx, batch("warm"))
	require.NoError(t, err)

	var evals atomic.Int64
	proxy := testserver.Proxy(t, server, func(request string) testserver.Fate {
		if strings.Contains(strings.ToLower(request), "evalsha") {
			evals.Add(1)
			return testserver.Cut
		}
		return testserver.Pass
	})
	client := redis.NewClient(&redis.Options{Addr: proxy, ContextTimeoutEnabled: true, MaxRetries: 3})
	t.Cleanup(func() { client.Close() })
	s := newStore(t, client, nil)
	_, err = s.Take(ctx, batch("k"))
	require.Error(t, err)
	require.EqualValues(t, 1, evals.Load())
	look := batch("k")
	require.NoError(t, direct.Peek(ctx, look))
	require.EqualValues(t, 4, look[0].Decision.Remaining)

	taken := batch("k")
	_, err = direct.Take(ctx, taken)
	require.NoError(t, err)
	require.Error(t, s.Refund(ctx, taken))
	require.NoError(t, s.Refund(ctx, taken), "there is nothing left to refund")
	require.EqualValues(t, 2, evals.Load())
	require.NoError(t, direct.Peek(ctx, look))
	require.EqualValues(t, 4, look[0].Decision.Remaining)
}

// RC-01, LK-07: several stores on one server are one.
func TestStoresShareTheServer(t *testing.T) {
	addr := testserver.Redis(t)
	stores := make([]*redisstore.Store, 4)
	for i := range stores {
		stores[i] = newStore(t, newClient(t, addr), nil)
	}
	for round := range 20 {
		key := fmt.Sprint("k", round)
		var admitted atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 200 {
			wg.Go(func() {
				<-start
				if ok, err := stores[i%4].Take(context.Background(), batch(key)); err == nil && ok {
					admitted.Add(1)
				}
			})
		}
		close(start)
		wg.Wait()
		require.EqualValues(t, 5, admitted.Load())
	}
	require.NoError(t, stores[0].Forget(ctx, []string{"k0"}))
	ok, err := stores[1].Take(ctx, batch("k0"))
	require.NoError(t, err)
	require.True(t, ok)
}

// The exact window of five takes one short string.
func TestMemoryOfAKey(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	key := "ag:{0123456789abcdef}01234567"
	for range 5 {
		_, err := s.Take(ctx, batch(key))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, client.MemoryUsage(ctx, key).Val(), int64(121))
}
