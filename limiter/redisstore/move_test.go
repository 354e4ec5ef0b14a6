package redisstore_test

import (
	"context"
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

// A store that does not know yet that a slot moves, or has moved, asks the node that
// it is sent to, and charges once.
func TestASlotThatMoves(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	s := newStore(t, newCluster(t, cluster), nil)
	keys := append(apart(t, cluster, 2), "ag:{0}new")
	take := func(left int64, keys ...string) {
		t.Helper()
		charges := fives(keys...)
		ok, err := s.Take(ctx, charges)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, left, charges[0].Decision.Remaining)
		require.Equal(t, []int64{left}, remaining(t, s, keys[0]))
	}
	take(4, keys[:2]...)
	move := cluster.BeginMove(cluster.Slot(keys[0]))
	take(3, keys[:2]...)
	move.Keys() // the owner answers ASK now
	take(2, keys[:2]...)
	take(4, keys[2]) // a new one is made at its new place
	move.End()       // MOVED
	take(1, keys[:2]...)
	refunded := fives(keys[0])
	ok, err := s.Take(ctx, refunded)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, s.Refund(ctx, refunded))
	take(0, keys[:2]...)
	denied := fives(keys[1], keys[0])
	ok, err = s.Take(ctx, denied)
	require.NoError(t, err)
	require.False(t, ok)
	require.NoError(t, s.Forget(ctx, keys))
	require.Equal(t, []int64{5, 5, 5}, remaining(t, s, keys...))
}

// Keys of one slot that are at two nodes for a while cannot be asked about together:
// who does so waits until they can, or until his deadline, and is charged nothing
// meanwhile. Who asks about one of them is not held up.
func TestKeysThatAreTornApart(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	s := newStore(t, newCluster(t, cluster), nil)
	keys := []string{"ag:{torn}a", "ag:{torn}b"}
	ok, err := s.Take(ctx, fives(keys...))
	require.NoError(t, err)
	require.True(t, ok)
	move := cluster.BeginMove(cluster.Slot(keys[0]))
	move.Keys(keys[0])

	hurried, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	_, err = s.Take(hurried, fives(keys...))
	require.Error(t, err) // TRYAGAIN, or the deadline if it comes during one more try
	require.Equal(t, []int64{4, 4}, remaining(t, s, keys...))

	var both, one sync.WaitGroup
	var alone, together atomic.Int64
	for range 3 {
		both.Go(func() {
			if ok, err := s.Take(ctx, fives(keys...)); err == nil && ok {
				together.Add(1)
			}
		})
	}
	for i := range 57 {
		one.Go(func() {
			ok, err := s.Take(ctx, []limiter.Charge{{Key: keys[i%2], Limit: limiter.SlidingWindow{Limit: 5, Window: 24 * time.Hour}, Ask: limiter.Ask{Cost: 1}}})
			if err == nil && ok {
				alone.Add(1)
			}
		})
	}
	one.Wait()
	require.EqualValues(t, 8, alone.Load(), "four more of each")
	require.Zero(t, together.Load())
	require.NoError(t, s.Forget(ctx, keys))
	move.Keys()
	move.End()
	both.Wait()
	require.EqualValues(t, 3, together.Load())
	require.Equal(t, []int64{2, 2}, remaining(t, s, keys...))
}

// A hot slot moves to and fro under load: none is admitted beyond the limit, no unit
// is lost, and nobody gets an error.
func TestReshardingUnderLoad(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	stores := []*redisstore.Store{newStore(t, newCluster(t, cluster), nil), newStore(t, newCluster(t, cluster), nil)}
	keys := append(apart(t, cluster, 3), "ag:{0}of the same slot")
	const limit = 20_000
	hot := limiter.FixedWindow{Limit: limit, Window: 31 * 24 * time.Hour}
	var admitted, refused, moves atomic.Int64
	var wg sync.WaitGroup
	t.Cleanup(wg.Wait)
	for i := range 32 {
		wg.Go(func() {
			for {
				for admitted.Load() > limit/5*(moves.Load()+1) && t.Context().Err() == nil {
					time.Sleep(time.Millisecond) // so that there are moves enough
				}
				charges := batch(keys[i%3])
				charges[0].Limit = hot
				if i%4 == 0 && i%3 > 0 { // a check of two nodes
					charges = batch(keys[i%3], keys[0])
					charges[0].Limit, charges[1].Limit = limiter.TokenBucket{Capacity: 1_000_000, Refill: 1_000_000, Per: time.Second}, hot
				} else if i%3 > 0 {
					charges[0].Key = keys[0]
				}
				ok, err := stores[i%2].Take(ctx, charges)
				if err != nil {
					t.Error(err)
					return
				}
				if !ok {
					refused.Add(1)
					return
				}
				admitted.Add(1)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
			move := cluster.BeginMove(cluster.Slot(keys[0]))
			move.Keys()
			move.End()
			moves.Add(1)
		}
	}
	require.EqualValues(t, limit, admitted.Load())
	require.EqualValues(t, 32, refused.Load())
	require.Greater(t, moves.Load(), int64(3))
	look := batch(keys[0])
	look[0].Limit = hot
	require.NoError(t, stores[0].Peek(ctx, look))
	require.Zero(t, look[0].Decision.Remaining)
	t.Logf("%d moves", moves.Load())
}

// A primary is killed under load, with a replica that lags. What the replica had not
// got is lost, and admitted once more, never more than that; the store goes on by
// itself.
func TestAPrimaryIsKilledUnderLoad(t *testing.T) {
	cluster := testserver.Cluster(t)
	client := newCluster(t, cluster)
	s, err := redisstore.New(redisstore.Config{Client: client, Timeout: 500 * time.Millisecond})
	require.NoError(t, err)
	keys := apart(t, cluster, 3)
	limit := limiter.FixedWindow{Limit: 30_000, Window: 31 * 24 * time.Hour}
	var admitted [3]atomic.Int64
	load := func(stop <-chan struct{}) {
		var wg sync.WaitGroup
		for i := range 24 {
			wg.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					charges := batch(keys[i%3])
					charges[0].Limit = limit
					if ok, err := s.Take(ctx, charges); err == nil && ok {
						admitted[i%3].Add(1)
					} else if err == nil {
						return
					}
				}
			})
		}
		wg.Wait()
	}
	look := func(i int) (int64, error) {
		charges := batch(keys[i])
		charges[0].Limit = limit
		err := s.Peek(ctx, charges)
		return charges[0].Decision.Remaining, err
	}

	stop := make(chan struct{})
	loaded := make(chan struct{})
	go func() { load(stop); close(loaded) }()
	time.Sleep(400 * time.Millisecond)
	cluster.CutReplica(cluster.Slot(keys[0]))
	time.Sleep(100 * time.Millisecond)
	cluster.Kill(cluster.Slot(keys[0]))
	time.Sleep(200 * time.Millisecond)
	close(stop)
	<-loaded
	killed := time.Now()
	require.Eventually(t, func() bool { _, err := look(0); return err == nil }, 2*time.Minute, 20*time.Millisecond)
	t.Logf("answered again %v after the load stopped", time.Since(killed).Round(time.Millisecond))
	var lost [3]int64
	for i := range keys {
		left, err := look(i)
		require.NoError(t, err)
		lost[i] = max(0, admitted[i].Load()-(limit.Limit-left))
	}
	t.Logf("of %d charges that the killed primary had acknowledged, %d were lost", admitted[0].Load(), lost[0])
	require.Positive(t, lost[0])
	require.Zero(t, lost[1]+lost[2], "the other nodes lost nothing")

	load(make(chan struct{})) // to the end
	for i := range keys {
		left, err := look(i)
		require.NoError(t, err)
		require.Zero(t, left)
		require.LessOrEqual(t, admitted[i].Load()-limit.Limit, lost[i], keys[i])
	}
}

// LOADING, MASTERDOWN and the like say that nothing was done: a replica that is cut
// off must not be taken for one with alien values.
func TestAReplicaWithoutItsPrimaryIsAnOutage(t *testing.T) {
	addr := testserver.Redis(t, "--replica-serve-stale-data", "no")
	client := newClient(t, addr)
	s := newStore(t, client, nil)
	_, err := s.Take(ctx, fives("k"))
	require.NoError(t, err)
	require.NoError(t, client.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err())
	_, err = s.Take(ctx, fives("k"))
	require.ErrorContains(t, err, "MASTERDOWN")
	require.NotErrorIs(t, err, limiter.ErrState)
	require.NoError(t, client.ConfigSet(ctx, "replica-serve-stale-data", "yes").Err())
	_, err = s.Take(ctx, fives("k"))
	require.True(t, redis.IsReadOnlyError(err), "%v", err)
}
