package redisstore_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter/redisstore"
)

func TestNewClientIsSafe(t *testing.T) {
	for _, url := range []string{
		"redis://127.0.0.1:6379", "rediss://user:p%40ss@127.0.0.1:6380/3", "redis://127.0.0.1?read_timeout=2s",
		"redis+sentinel://127.0.0.1:26379,127.0.0.2/mymaster/2", "rediss+sentinel://u:p@127.0.0.1/mymaster?sentinel_password=x",
	} {
		c, err := redisstore.NewClient(url)
		require.NoError(t, err, url)
		o := c.(*redis.Client).Options()
		require.True(t, o.ContextTimeoutEnabled, url)
		require.LessOrEqual(t, o.MaxRetries, 0, url)
		require.LessOrEqual(t, o.DialTimeout, 500*time.Millisecond, url)
		require.LessOrEqual(t, o.ReadTimeout, 2*time.Second, url)
		_, err = redisstore.New(redisstore.Config{Client: c})
		require.NoError(t, err, url)
		require.NoError(t, c.Close())
	}
}

func TestNewClientOfAClusterIsSafe(t *testing.T) {
	for url, secure := range map[string]bool{
		"redis+cluster://u:p%40ss@127.0.0.1:7000,[::1]:7001,127.0.0.2,[::1]":    false,
		"rediss+cluster://u:p%40ss@127.0.0.1:7000,[::1]:7001,127.0.0.2,[::1]/0": true,
	} {
		c, err := redisstore.NewClient(url)
		require.NoError(t, err, url)
		o := c.(*redis.ClusterClient).Options()
		require.Equal(t, []string{"127.0.0.1:7000", "[::1]:7001", "127.0.0.2:6379", "[::1]:6379"}, o.Addrs)
		require.Equal(t, "u", o.Username)
		require.Equal(t, "p@ss", o.Password)
		require.Equal(t, secure, o.TLSConfig != nil)
		require.True(t, o.ContextTimeoutEnabled, url)
		require.LessOrEqual(t, o.MaxRetries, 0, url)
		require.LessOrEqual(t, o.DialTimeout, 500*time.Millisecond, url)
		require.LessOrEqual(t, o.ReadTimeout, 500*time.Millisecond, url)
		_, err = redisstore.New(redisstore.Config{Client: c})
		require.NoError(t, err, url)
		require.NoError(t, c.Close())
	}
}

func TestNewClientErrorsHoldNoPassword(t *testing.T) {
	for url, want := range map[string]string{
		"redis://user:hunter2:#@%host":               "cannot be read",
		"http://user:hunter2@host":                   `scheme is "http"`,
		"user:hunter2@host":                          "",
		"redis://user:hunter2@host/x":                "",
		"redis://user:hunter2@host?nonsense=1":       "",
		"redis+sentinel://u:hunter2@host":            "must name the primary",
		"redis+sentinel://u:hunter2@host/m/x":        `database is "x"`,
		"redis+sentinel://u:hunter2@host/m?sentinel": `unknown parameter "sentinel"`,
		"redis+sentinel://u:x/y/hunter2@host/m":      "cannot be read",
		"redis+sentinel://u:12?hunter2@host/m":       "cannot be read",
		"redis://u:12/hunter2@host":                  "cannot be read",
		"redis+cluster://u:hunter2@host/1":           `database is "1"`,
		"redis+cluster://u:hunter2@host,":            "a host is empty",
		"redis+cluster://u:hunter2@host?addr=x":      `unknown parameter "addr"`,
		"rediss+cluster://u:12/hunter2@host":         "cannot be read",
	} {
		_, err := redisstore.NewClient(url)
		require.ErrorContains(t, err, want, url)
		require.NotContains(t, err.Error(), "hunter2")
	}
}

func TestWarnings(t *testing.T) {
	for want, args := range map[string][]string{
		"":                                {"--appendonly", "yes"},
		"no persistence":                  {},
		"maxmemory-policy is allkeys-lru": {"--save", "60 1", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"},
	} {
		client := newClient(t, testserver.Redis(t, args...))
		got, err := newStore(t, client, nil).Warnings(ctx)
		require.NoError(t, err)
		if want == "" {
			require.Empty(t, got)
			continue
		}
		require.Len(t, got, 1)
		require.Contains(t, got[0], want)
	}
}

// With a password, by an ACL user that may do no more than a store needs.
func TestAUserWithFewRights(t *testing.T) {
	addr := testserver.Redis(t)
	admin := newClient(t, addr)
	require.NoError(t, admin.Do(ctx, "ACL", "SETUSER", "limits", "on", ">secret", "~ag:*", "+evalsha", "+eval", "+get", "+set", "+del", "+pttl", "+pexpire", "+time", "+hello", "+client").Err())
	c, err := redisstore.NewClient("redis://limits:secret@" + addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	s := newStore(t, c, nil)
	charges := batch("ag:a", "ag:b", "ag:c")
	ok, err := s.Take(ctx, charges)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, s.Refund(ctx, charges))
	require.NoError(t, s.Forget(ctx, []string{"ag:a"}))
	_, err = s.Take(ctx, batch("other"))
	require.Error(t, err)
	_, err = s.Warnings(ctx)
	require.Error(t, err, "it is told that the server does not tell")
}

// Through Sentinel, over a failover: the store heals by itself.
func TestAFailover(t *testing.T) {
	cluster := testserver.Sentinel(t)
	c, err := redisstore.NewClient("redis+sentinel://" + cluster.Sentinels + "/" + cluster.Name)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	s := newStore(t, c, nil)
	for range 3 {
		ok, err := s.Take(ctx, batch("k"))
		require.NoError(t, err)
		require.True(t, ok)
	}
	require.NoError(t, c.Do(ctx, "WAIT", 1, 5000).Err()) // the charges are with the replica
	cluster.KillPrimary()
	require.Eventually(t, func() bool {
		return s.Peek(ctx, batch("k")) == nil
	}, 30*time.Second, 50*time.Millisecond)
	look := batch("k")
	require.NoError(t, s.Peek(ctx, look))
	require.EqualValues(t, 2, look[0].Decision.Remaining, "nothing that was replicated is lost")
	require.IsType(t, &redis.Client{}, c)
}
