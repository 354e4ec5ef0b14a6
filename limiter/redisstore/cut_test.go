package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/redisstore"
)

// A wire is what a cluster's client has to one of its nodes. It can be cut.
type wire struct {
	addr    string
	scripts atomic.Int64 // that were sent
	most    atomic.Int64 // scripts that are passed on; then it is dead
	deaf    atomic.Bool  // what comes back is lost as well, but for
	last    atomic.Int64 // so many bytes, after which the wire is whole again
}

var errCut = errors.New("cut")

func (w *wire) dead() bool { return w.scripts.Load() >= w.most.Load() }

// dial connects to the node through w, and to others as usual.
func (w *wire) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if addr == w.addr && w.dead() {
		return nil, errCut
	}
	c, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err == nil && addr == w.addr {
		c = wired{c, w}
	}
	return c, err
}

type wired struct {
	net.Conn
	wire *wire
}

func (c wired) Write(b []byte) (int, error) {
	if c.wire.dead() {
		return 0, errCut
	}
	c.wire.scripts.Add(int64(bytes.Count(b, []byte("evalsha"))))
	return c.Conn.Write(b)
}

func (c wired) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.wire.deaf.Load() || !c.wire.dead() {
		return n, err
	}
	c.Close()
	if last := c.wire.last.Swap(0); last > 0 {
		c.wire.most.Store(1 << 60)
		return min(n, int(last)), nil
	}
	return 0, errCut
}

// wiredStore is a store of a client that would retry whatever it may, with a wire to
// the node of a key.
func wiredStore(t *testing.T, cluster *testserver.Clustered, key string) (*redisstore.Store, *wire) {
	t.Helper()
	w := &wire{addr: cluster.Primary(cluster.Slot(key)).Options().Addr}
	w.most.Store(1 << 60)
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster.Addrs(), ContextTimeoutEnabled: true, DialTimeout: ample, ReadTimeout: ample, MaxRetries: 3, Dialer: w.dial, DialerRetries: 1,
	})
	t.Cleanup(func() { client.Close() })
	return newStore(t, client, nil), w
}

// A process that dies between a charge and its refund leaves the charge standing
// until it ages out, and no more than that one.
func TestDeathBetweenAChargeAndItsRefund(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	direct := newStore(t, newCluster(t, cluster), nil)
	keys := apart(t, cluster, 2)
	s, w := wiredStore(t, cluster, keys[1])
	short := func() []limiter.Charge {
		charges := fives(keys...)
		charges[1].Limit = limiter.SlidingWindow{Limit: 5, Window: 2 * time.Second}
		return charges
	}
	for range 5 {
		ok, err := s.Take(ctx, short()[:1])
		require.NoError(t, err)
		require.True(t, ok)
	}
	require.NoError(t, s.Peek(ctx, short())) // brings the script
	w.most.Store(w.scripts.Load() + 1)       // the charge passes, its refund does not
	charges := short()
	ok, err := s.Take(ctx, charges)
	require.NoError(t, err, "the answer is known")
	require.False(t, ok)
	require.False(t, charges[1].Taken)
	look := short()
	require.NoError(t, direct.Peek(ctx, look))
	require.EqualValues(t, 4, look[1].Decision.Remaining)
	require.Eventually(t, func() bool {
		return direct.Peek(ctx, look) == nil && look[1].Decision.Remaining == 5
	}, time.Minute, 50*time.Millisecond)
}

// A message whose answer is lost is never sent again, whatever the client retries:
// what it charged stands once, and what other nodes were charged is given back.
func TestALostAnswerOfANodeChargesOnce(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	direct := newStore(t, newCluster(t, cluster), nil)
	keys := apart(t, cluster, 2)
	for i := 0; len(keys) < 3; i++ { // a second slot of the node, so that a pipeline goes there
		key := "ag:{other" + string(rune('a'+i)) + "}k"
		if cluster.Primary(cluster.Slot(key)) == cluster.Primary(cluster.Slot(keys[1])) {
			keys = append(keys, key)
		}
	}
	s, w := wiredStore(t, cluster, keys[1])
	require.NoError(t, s.Peek(ctx, fives(keys...)))
	require.NoError(t, s.Peek(ctx, fives(keys...)))
	before := w.scripts.Load()
	w.deaf.Store(true)
	w.most.Store(before + 1)
	charges := fives(keys...)
	ok, err := s.Take(ctx, charges)
	require.Error(t, err)
	require.False(t, ok)
	for _, c := range charges {
		require.False(t, c.Taken)
	}
	require.EqualValues(t, 2, w.scripts.Load()-before, "both scripts of one message, sent once")
	require.Equal(t, []int64{5, 4, 4}, remaining(t, direct, keys...))

	w.deaf.Store(false)
	w.most.Store(1 << 60)
	taken := fives(keys[1])
	ok, err = s.Take(ctx, taken)
	require.NoError(t, err)
	require.True(t, ok)
	w.deaf.Store(true)
	w.most.Store(w.scripts.Load() + 1)
	require.Error(t, s.Refund(ctx, taken))
	require.Equal(t, []int64{4}, remaining(t, direct, keys[1]), "the refund was made, once")
	require.NoError(t, s.Refund(ctx, taken), "there is nothing left to refund")
}

// Of a message whose answer breaks off, what was answered is known, and given back.
func TestAnAnswerThatBreaksOff(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	direct := newStore(t, newCluster(t, cluster), nil)
	keys := apart(t, cluster, 1)
	for i := 0; len(keys) < 2; i++ {
		key := "ag:{other" + string(rune('a'+i)) + "}k"
		if cluster.Primary(cluster.Slot(key)) == cluster.Primary(cluster.Slot(keys[0])) {
			keys = append(keys, key)
		}
	}
	s, w := wiredStore(t, cluster, keys[0])
	require.NoError(t, s.Peek(ctx, fives(keys...)))
	require.NoError(t, s.Peek(ctx, fives(keys...)))
	w.last.Store(60) // of two answers of 53
	w.deaf.Store(true)
	w.most.Store(w.scripts.Load() + 1)
	ok, err := s.Take(ctx, fives(keys...))
	require.Error(t, err)
	require.False(t, ok)
	require.Equal(t, []int64{5, 4}, remaining(t, direct, keys...))
}

// A node that does not answer costs the deadline and no more, and others nothing.
func TestADeadlineCutsCallsOfANode(t *testing.T) {
	cluster := testserver.Cluster(t)
	client := newCluster(t, cluster)
	s, err := redisstore.New(redisstore.Config{Client: client, Timeout: 100 * time.Millisecond})
	require.NoError(t, err)
	patient := newStore(t, client, nil)
	keys := apart(t, cluster, 2)
	charges := fives(keys...)
	_, err = patient.Take(ctx, charges)
	require.NoError(t, err)
	require.NoError(t, cluster.Primary(cluster.Slot(keys[0])).ClientPause(ctx, 2*time.Minute).Err())
	for name, call := range map[string]func() error{
		"take":   func() error { _, err := s.Take(ctx, fives(keys...)); return err },
		"peek":   func() error { return s.Peek(ctx, fives(keys...)) },
		"refund": func() error { return s.Refund(ctx, charges) },
		"forget": func() error { return s.Forget(ctx, keys[:1]) },
	} {
		start := time.Now()
		require.ErrorIs(t, call(), context.DeadlineExceeded, name)
		require.Less(t, time.Since(start), 30*time.Second, name)
		require.Eventually(t, func() bool { return remaining(t, patient, keys[1])[0] >= 4 }, 20*time.Second, 10*time.Millisecond, name)
	}
}
