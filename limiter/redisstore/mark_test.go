package redisstore_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
)

func TestAMarkIsLeftForTheNext(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	a, b := newStore(t, client, nil), newStore(t, client, nil)
	last, err := a.Mark(ctx, "one")
	require.NoError(t, err)
	require.Empty(t, last)
	last, err = b.Mark(ctx, "two")
	require.NoError(t, err)
	require.Equal(t, "one", last)
	last, err = a.Mark(ctx, "one")
	require.NoError(t, err)
	require.Equal(t, "two", last)
	for range 2 {
		last, err = b.Marked(ctx)
		require.NoError(t, err)
		require.Equal(t, "one", last, "and only looked at")
	}
	life, err := client.PTTL(ctx, "ag:mark").Result()
	require.NoError(t, err)
	require.Greater(t, life, 30*24*time.Hour)
	require.NoError(t, client.Del(ctx, "ag:mark").Err())
	last, err = a.Marked(ctx)
	require.NoError(t, err)
	require.Empty(t, last)
	require.NoError(t, client.Close())
	_, err = a.Marked(ctx)
	require.ErrorContains(t, err, "redisstore: ")
	_, err = a.Mark(ctx, "one")
	require.ErrorContains(t, err, "redisstore: ")
}
