package memcachestore_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter/memcachestore"
)

func TestAMarkIsLeftForTheNext(t *testing.T) {
	server := testserver.MortalMemcached(t)
	a := newStore(t, memcachestore.Config{Addrs: []string{server.Addr}})
	b := newStore(t, memcachestore.Config{Addrs: []string{server.Addr}})
	last, err := a.Mark(ctx, "one")
	require.NoError(t, err)
	require.Empty(t, last)
	last, err = b.Mark(ctx, "two")
	require.NoError(t, err)
	require.Equal(t, "one", last)
	server.Kill()
	_, err = a.Mark(ctx, "one")
	require.Error(t, err)
}
