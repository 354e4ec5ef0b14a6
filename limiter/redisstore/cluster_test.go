package redisstore_test

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
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

func newCluster(t testing.TB, cluster *testserver.Clustered) *redis.ClusterClient {
	t.Helper()
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), ContextTimeoutEnabled: true, PoolSize: 64, DialTimeout: ample, ReadTimeout: ample})
	t.Cleanup(func() { c.Close() })
	return c
}

// apart is n keys of which each is at another primary.
func apart(t testing.TB, cluster *testserver.Clustered, n int) []string {
	t.Helper()
	var keys []string
	seen := map[*redis.Client]bool{}
	for i := 0; len(keys) < n; i++ {
		key := fmt.Sprintf("ag:{%d}k", i)
		if node := cluster.Primary(cluster.Slot(key)); !seen[node] {
			seen[node] = true
			keys = append(keys, key)
		}
	}
	return keys
}

func fives(keys ...string) []limiter.Charge {
	charges := batch(keys...)
	for i := range charges {
		charges[i].Limit = five
	}
	return charges
}

// remaining looks at keys one by one.
func remaining(t testing.TB, s limiter.Store, keys ...string) []int64 {
	t.Helper()
	var left []int64
	for _, key := range keys {
		look := fives(key)
		require.NoError(t, s.Peek(ctx, look))
		left = append(left, look[0].Decision.Remaining)
	}
	return left
}

// counts of a server: of commands, and of "reads", messages from its clients.
func counts(t testing.TB, node *redis.Client) map[string]int {
	t.Helper()
	n := calls(t, node)
	info, err := node.Info(ctx, "stats").Result()
	require.NoError(t, err)
	n["reads"], _ = strconv.Atoi(regexp.MustCompile(`total_reads_processed:(\d+)`).FindStringSubmatch(info)[1])
	return n
}

// ST-02, ST-04: keys of different subjects are asked about together, by one script a
// slot and one message a node.
func TestACheckIsOneMessageANode(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	s := newStore(t, newCluster(t, cluster), nil)
	keys := apart(t, cluster, 3)
	for i, node := 0, cluster.Primary(cluster.Slot(keys[0])); ; i++ { // a second slot of the first node
		if key := fmt.Sprintf("ag:{other%d}k", i); cluster.Primary(cluster.Slot(key)) == node {
			keys = append(keys, key, key+"2")
			break
		}
	}
	check := func() {
		charges := batch(keys...)
		for i := range charges {
			charges[i].Limit = limiter.SlidingWindowCounter{Limit: 1_000_000, Window: time.Hour}
		}
		ok, err := s.Take(ctx, charges)
		require.NoError(t, err)
		require.True(t, ok)
	}
	for range 3 { // brings the scripts, and connections
		check()
	}
	before := map[*redis.Client]map[string]int{}
	for _, node := range cluster.Nodes() {
		before[node] = counts(t, node)
	}
	for range 100 {
		check()
	}
	for i, key := range keys[:3] {
		node := cluster.Primary(cluster.Slot(key))
		after, before := counts(t, node), before[node]
		scripts := 100
		if i == 0 {
			scripts = 200
		}
		require.Equal(t, scripts, after["evalsha"]-before["evalsha"], key)
		require.Equal(t, before["eval"], after["eval"], key)
		require.GreaterOrEqual(t, after["reads"]-before["reads"], 100, key)
		require.Less(t, after["reads"]-before["reads"], 150, "%s: the rest are its replica's and ours", key)
	}
}

// If a part of a check denies, nothing stands of the others when Take returns.
func TestADenialGivesBackWhatOtherNodesWereCharged(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	s := newStore(t, newCluster(t, cluster), nil)
	keys := apart(t, cluster, 3)
	full := fives(keys[1])
	for range 5 {
		ok, err := s.Take(ctx, full)
		require.NoError(t, err)
		require.True(t, ok)
	}
	for range 20 {
		charges := fives(keys...)
		ok, err := s.Take(ctx, charges)
		require.NoError(t, err)
		require.False(t, ok)
		for i, c := range charges {
			require.False(t, c.Taken)
			require.Equal(t, i != 1, c.Decision.Allowed)
			require.Equal(t, []int64{5, 0, 5}[i], c.Decision.Remaining, "as things are")
			require.Equal(t, i == 1, c.Decision.RetryAfter > 0)
			require.NotZero(t, c.Decision.At)
		}
		require.Zero(t, charges[0].Decision.ResetAfter)
		require.Equal(t, []int64{5, 0, 5}, remaining(t, s, keys...))
	}
	require.NoError(t, s.Refund(ctx, full))
	require.NoError(t, s.Forget(ctx, keys))
	require.Equal(t, []int64{5, 5, 5}, remaining(t, s, keys...))

	// An error of one part gives back the others, too.
	require.NoError(t, cluster.Primary(cluster.Slot(keys[2])).Set(ctx, keys[2], "alien", 0).Err())
	charges := fives(keys...)
	ok, err := s.Take(ctx, charges)
	require.False(t, ok)
	require.ErrorIs(t, err, limiter.ErrState)
	var which *limiter.ChargeError
	require.ErrorAs(t, err, &which)
	require.Equal(t, 2, which.Index)
	require.False(t, charges[0].Taken || charges[1].Taken || charges[2].Taken)
	require.Equal(t, []int64{5, 5}, remaining(t, s, keys[:2]...))

	// Whoever is gone when the answer comes leaves nothing behind either.
	hurried, cancel := context.WithCancel(ctx)
	time.AfterFunc(10*time.Millisecond, cancel)
	require.NoError(t, cluster.Primary(cluster.Slot(keys[2])).ClientPause(ctx, 100*time.Millisecond).Err())
	_, err = s.Take(hurried, fives(keys...))
	require.ErrorIs(t, err, limiter.ErrState)
	require.Equal(t, []int64{5, 5}, remaining(t, s, keys[:2]...))
}

// Advisory groups are whole or not there, though nodes decide apart.
func TestAdvisoryGroupsThatSpanNodes(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	s := newStore(t, newCluster(t, cluster), nil)
	keys := apart(t, cluster, 3)
	fill := fives(keys[2])
	for range 5 {
		_, err := s.Take(ctx, fill)
		require.NoError(t, err)
	}
	charges := fives(keys[0]+"/torn", keys[1]+"/vote", keys[2], keys[0]+"/whole", keys[1]+"/whole")
	for i, group := range []int{1, 0, 1, 2, 2} {
		charges[i].Advisory = group
	}
	ok, err := s.Take(ctx, charges)
	require.NoError(t, err)
	require.True(t, ok)
	left := []int64{5, 4, 0, 4, 4}
	for i := range charges {
		require.Equal(t, []bool{false, true, false, true, true}[i], charges[i].Taken, "%d", i)
		require.Equal(t, i != 2, charges[i].Decision.Allowed, "%d", i)
		require.Equal(t, left[i], charges[i].Decision.Remaining, "%d", i)
		require.Equal(t, left[i:i+1], remaining(t, s, charges[i].Key), "%d", i)
	}
	require.NoError(t, s.Refund(ctx, charges))

	// The vote of another node takes them all back.
	charges[0].Advisory, charges[1].Advisory, charges[2].Advisory = 1, 1, 0
	ok, err = s.Take(ctx, charges)
	require.NoError(t, err)
	require.False(t, ok)
	for i := range charges {
		require.False(t, charges[i].Taken, "%d", i)
		require.Equal(t, []int64{5, 5, 0, 5, 5}[i:i+1], remaining(t, s, charges[i].Key), "%d", i)
	}

	// A cost that can never be admitted tears its group as well.
	charges[2] = fives(keys[2] + "/vote")[0]
	charges[3].Cost = 6
	ok, err = s.Take(ctx, charges)
	require.NoError(t, err)
	require.True(t, ok)
	require.False(t, charges[3].Taken || charges[4].Taken)
	require.Equal(t, limiter.Decision{}, charges[3].Decision)
	require.Equal(t, []int64{5}, remaining(t, s, charges[4].Key))
}

// A script that one node has lost comes back there, and charges once.
func TestAScriptThatOneNodeLacks(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	s := newStore(t, newCluster(t, cluster), nil)
	keys := apart(t, cluster, 3)
	for i := range 4 {
		charges := fives(keys...)
		ok, err := s.Take(ctx, charges)
		require.NoError(t, err)
		require.True(t, ok)
		left := int64(4 - i)
		require.Equal(t, []int64{left, left, left}, remaining(t, s, keys...))
		require.NoError(t, cluster.Primary(cluster.Slot(keys[i%3])).ScriptFlush(ctx).Err())
	}
}

// Stores of several processes, in any order of keys: of each key no more than its
// limit, and whatever is refused stands nowhere.
func TestCrowdsOnSeveralNodes(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	stores := []*redisstore.Store{newStore(t, newCluster(t, cluster), nil), newStore(t, newCluster(t, cluster), nil)}
	keys := apart(t, cluster, 3)
	limit := limiter.SlidingWindow{Limit: 50, Window: time.Hour}
	var admitted [3]atomic.Int64
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			for n := range 20 {
				first := (i + n) % 3
				charges := batch(keys[first], keys[(first+1)%3])
				charges[0].Limit, charges[1].Limit = limit, limit
				ok, err := stores[i%2].Take(ctx, charges)
				if err != nil {
					t.Error(err)
				}
				if ok {
					admitted[first].Add(1)
					admitted[(first+1)%3].Add(1)
				}
			}
		})
	}
	wg.Wait()
	for i, key := range keys {
		look := batch(key)
		look[0].Limit = limit
		require.NoError(t, stores[0].Peek(ctx, look))
		require.LessOrEqual(t, admitted[i].Load(), int64(50))
		require.Equal(t, 50-admitted[i].Load(), look[0].Decision.Remaining, key)
	}
}

// By an ACL user that may do no more than a store needs, while a slot moves, too.
func TestAUserWithFewRightsOnACluster(t *testing.T) {
	cluster := testserver.Cluster(t)
	for _, node := range cluster.Nodes() {
		require.NoError(t, node.Do(ctx, "ACL", "SETUSER", "limits", "on", ">secret", "~ag:*", "+evalsha", "+eval", "+get", "+set", "+del", "+pttl", "+pexpire", "+time", "+hello", "+client", "+cluster|slots", "+asking").Err())
	}
	client, err := redisstore.NewClient("redis+cluster://limits:secret@" + cluster.Addrs()[0] + "," + cluster.Addrs()[1])
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	s := newStore(t, client, nil)
	keys := apart(t, cluster, 3)
	ok, err := s.Take(ctx, fives(keys...))
	require.NoError(t, err)
	require.True(t, ok)
	move := cluster.BeginMove(cluster.Slot(keys[0]))
	move.Keys()
	charges := fives(keys...)
	ok, err = s.Take(ctx, charges)
	require.NoError(t, err)
	require.True(t, ok)
	require.NoError(t, s.Refund(ctx, charges))
	require.Equal(t, []int64{4, 4, 4}, remaining(t, s, keys...))
	require.NoError(t, s.Forget(ctx, keys))
	_, err = s.Take(ctx, fives("other"))
	require.Error(t, err)
}

func TestWarningsOfACluster(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	s := newStore(t, newCluster(t, cluster), nil)
	got, err := s.Warnings(ctx)
	require.NoError(t, err)
	require.Len(t, got, 1, "the same of all nodes")
	require.Contains(t, got[0], "no persistence")
}
