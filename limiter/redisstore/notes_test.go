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

func TestNotes(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	limitertest.Noter(t, func(t *testing.T, now func() time.Time) limiter.Noter {
		require.NoError(t, client.FlushDB(ctx).Err())
		return newStore(t, client, now)
	})
}

func TestNotesOnACluster(t *testing.T) {
	client := newCluster(t, testserver.Cluster(t))
	limitertest.Noter(t, func(t *testing.T, now func() time.Time) limiter.Noter {
		require.NoError(t, client.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return node.FlushDB(ctx).Err() }))
		return newStore(t, client, now)
	})
}

// Lists go away by themselves, by the server's clock, and one who is down or holds
// something else is an error.
func TestListsHaveATTL(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	store := newStore(t, client, nil)
	note := limiter.Note{List: "x", Key: "k", Label: []byte("l"), Until: time.Now().Add(time.Hour)}
	require.NoError(t, store.Note(ctx, []limiter.Note{note}))
	for _, key := range []string{"ag:{index:x}z", "ag:{index:x}h"} {
		ttl, err := client.PTTL(ctx, key).Result()
		require.NoError(t, err)
		require.InDelta(t, time.Hour, ttl, float64(time.Minute))
	}
	notes, err := store.Noted(ctx, []string{"x"})
	require.NoError(t, err)
	require.Len(t, notes, 1)
	note.Until = time.Now().Add(-time.Hour)
	note.List = "past"
	require.NoError(t, store.Note(ctx, []limiter.Note{note}))
	notes, err = store.Noted(ctx, []string{"past"})
	require.NoError(t, err)
	require.Empty(t, notes)

	require.NoError(t, client.Set(ctx, "ag:{index:alien}z", "text", 0).Err())
	_, err = store.Noted(ctx, []string{"alien"})
	require.ErrorContains(t, err, "WRONGTYPE")
	note.List = "alien"
	require.ErrorContains(t, store.Note(ctx, []limiter.Note{note}), "WRONGTYPE")

	down, err := redisstore.New(redisstore.Config{Client: newClient(t, "127.0.0.1:1")})
	require.NoError(t, err)
	require.Error(t, down.Note(ctx, []limiter.Note{note}))
}

// By an ACL user that has the rights which docs/operations.md names, and no more.
func TestNotesByAUserWithFewRights(t *testing.T) {
	addr := testserver.Redis(t)
	admin := newClient(t, addr)
	require.NoError(t, admin.Do(ctx, "ACL", "SETUSER", "limits", "on", ">secret", "~ag:*", "+evalsha", "+eval", "+time", "+pexpire", "+hello", "+client",
		"+zadd", "+zrem", "+zcard", "+zrange", "+zrangebyscore", "+zrevrangebyscore", "+hset", "+hget", "+hdel").Err())
	client, err := redisstore.NewClient("redis://limits:secret@" + addr)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	limitertest.Noter(t, func(t *testing.T, now func() time.Time) limiter.Noter {
		require.NoError(t, admin.FlushDB(ctx).Err())
		return newStore(t, client, now)
	})
}
