package memcachestore_test

import (
	"context"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/limitertest"
	"authguard/limiter/memcachestore"
)

var ctx = context.Background()

func newStore(t testing.TB, c memcachestore.Config) *memcachestore.Store {
	t.Helper()
	if c.Timeout == 0 {
		c.Timeout = 30 * time.Second
	}
	s, err := memcachestore.New(c)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// Keys of a batch lie together and apart.
func TestConformance(t *testing.T) {
	addrs := []string{testserver.Memcached(t), testserver.Memcached(t)}
	limitertest.CompensatingStore(t, func(t *testing.T, now func() time.Time) limiter.Store {
		require.NoError(t, memcache.New(addrs...).FlushAll())
		return newStore(t, memcachestore.Config{Addrs: addrs, Now: now})
	})
}
