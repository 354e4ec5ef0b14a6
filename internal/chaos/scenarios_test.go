//go:build unix

package chaos_test

import (
	"context"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"authguard/internal/testserver"
)

// scenario is one story: a store, and what happens to it under load.
type scenario struct {
	name    string
	lasts   time.Duration
	losses  int     // how often the store forgets what it was told, at most
	exact   bool    // nothing may go unanswered
	succeed float64 // share of the attempts with the right password, which are given back
	stage   func(t *testing.T) stage
}

// timeout is that of the store.
func (s scenario) timeout() time.Duration {
	if s.exact {
		return patience
	}
	return deadline
}

// stage is a store that has been started.
type stage struct {
	url  string
	acts []act
}

// act is something that happens at an instant after the start.
type act struct {
	at time.Duration
	do func()
}

const second = time.Second

// The last second or two of each is without a fault: all must be well again.
var scenarios = []scenario{
	{name: "steady", lasts: 3 * second, exact: true, stage: func(t *testing.T) stage {
		return stage{url: "redis://" + testserver.Redis(t)}
	}},
	{name: "scripts flushed", lasts: 3 * second, exact: true, stage: func(t *testing.T) stage {
		addr := testserver.Redis(t)
		return stage{"redis://" + addr, []act{{second / 2, func() { flushScripts(t, addr, 2*second) }}}}
	}},
	{name: "killed, empty again", lasts: 5 * second, losses: 1, stage: func(t *testing.T) stage {
		s := testserver.RedisServer(t)
		return stage{"redis://" + s.Addr(), []act{{3 * second / 2, s.Kill}, {5 * second / 2, s.Restart}}}
	}},
	{name: "killed, appendfsync always", lasts: 5 * second, stage: func(t *testing.T) stage {
		s := persistent(t)
		return stage{"redis://" + s.Addr(), []act{{3 * second / 2, s.Kill}, {5 * second / 2, s.Restart}}}
	}},
	{name: "flapping, appendfsync always", lasts: 8 * second, stage: func(t *testing.T) stage {
		s := persistent(t)
		var acts []act
		for at := second; at < 6*second; at += 2 * second {
			acts = append(acts, act{at, s.Kill}, act{at + second, s.Restart})
		}
		return stage{"redis://" + s.Addr(), acts}
	}},
	{name: "memory full, noeviction", lasts: 4 * second, stage: func(t *testing.T) stage {
		addr := testserver.Redis(t)
		return stage{"redis://" + addr, []act{
			{second, func() { setMaxMemory(t, addr, "1") }},
			{5 * second / 2, func() { setMaxMemory(t, addr, "0") }},
		}}
	}},
	{name: "paused", lasts: 6 * second, stage: func(t *testing.T) stage {
		s := testserver.RedisServer(t)
		return stage{"redis://" + s.Addr(), []act{{3 * second / 2, s.Pause}, {4 * second, s.Continue}}}
	}},
	{name: "paused, backlog full", lasts: 6 * second, stage: func(t *testing.T) stage {
		s := testserver.RedisServer(t, "--tcp-backlog", "1")
		return stage{"redis://" + s.Addr(), []act{
			{3 * second / 2, s.Pause},
			{2 * second, func() { fillBacklog(t, s.Addr()) }},
			{4 * second, s.Continue},
		}}
	}},
	{name: "replies 2 s late", lasts: 5 * second, stage: behindProxy(func(p *testserver.Network) []act {
		return []act{{second, func() { p.Delay(2 * second) }}, {3 * second, p.Heal}}
	})},
	{name: "black hole", lasts: 5 * second, stage: behindProxy(func(p *testserver.Network) []act {
		return []act{{second, p.Swallow}, {3 * second, p.Heal}}
	})},
	{name: "replies cut", lasts: 5 * second, stage: behindProxy(func(p *testserver.Network) []act {
		return []act{{second / 2, func() { p.Cut(0.3) }}, {4 * second, p.Heal}}
	})},
	{name: "replies cut, refunds", lasts: 5 * second, succeed: 0.5, stage: behindProxy(func(p *testserver.Network) []act {
		return []act{{second / 2, func() { p.Cut(0.3) }}, {4 * second, p.Heal}}
	})},
	{name: "Sentinel, killed, replica behind", lasts: 7 * second, losses: 1, stage: func(t *testing.T) stage {
		w := testserver.Sentinel(t)
		return stage{sentinelURL(w), []act{
			{8 * second / 5, func() { cutReplica(t, w) }},
			{2 * second, w.KillPrimary},
		}}
	}},
	{name: "Sentinel, paused and back", lasts: 8 * second, losses: 1, stage: func(t *testing.T) stage {
		w := testserver.Sentinel(t)
		primary := w.Primary(t)
		return stage{sentinelURL(w), []act{
			{2 * second, primary.Pause},
			{5 * second, func() { isPromoted(t, w, primary) }},
			{5 * second, primary.Continue},
		}}
	}},
	{name: "Cluster, one of three killed", lasts: 7 * second, losses: 1, stage: func(t *testing.T) stage {
		c := testserver.Cluster(t)
		return stage{"redis+cluster://" + strings.Join(c.Addrs(), ","), []act{
			{8 * second / 5, func() { c.CutReplica(0) }},
			{2 * second, func() { c.Kill(0) }},
		}}
	}},
}

func sentinelURL(w *testserver.Watched) string {
	return "redis+sentinel://" + w.Sentinels + "/" + w.Name
}

// behindProxy is a stage whose server is reached through a bad network.
func behindProxy(acts func(*testserver.Network) []act) func(*testing.T) stage {
	return func(t *testing.T) stage {
		p := testserver.NewNetwork(t, testserver.Redis(t))
		return stage{"redis://" + p.Addr, acts(p)}
	}
}

// persistent is a server that forgets nothing when it is killed. Where it can it
// writes to memory, which outlives it all the same: how fast the disk is, and who
// else writes to it, is no part of this.
func persistent(t *testing.T) *testserver.Server {
	args := []string{"--appendonly", "yes", "--appendfsync", "always"}
	if dir, err := os.MkdirTemp("/dev/shm", "chaos"); err == nil {
		t.Cleanup(func() { os.RemoveAll(dir) })
		args = append(args, "--dir", dir)
	}
	return testserver.RedisServer(t, args...)
}

// setMaxMemory has the server refuse to write, or write again.
func setMaxMemory(t *testing.T, addr, bytes string) {
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	if err := c.ConfigSet(context.Background(), "maxmemory", bytes).Err(); err != nil {
		t.Error(err)
	}
}

// flushScripts has the server forget its scripts again and again.
func flushScripts(t *testing.T, addr string, lasts time.Duration) {
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if err := c.ScriptFlush(context.Background()).Err(); err != nil {
			t.Error(err)
			return
		}
	}
}

// fillBacklog takes what places a paused server has left for connections, so that
// the system drops the next one without a word.
func fillBacklog(t *testing.T, addr string) {
	for range 100 {
		c, err := net.DialTimeout("tcp", addr, 100*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Error("the backlog is not full")
}

// cutReplica has the replica hear no more of its primary, so that what it is
// promoted with is old.
func cutReplica(t *testing.T, w *testserver.Watched) {
	s := sentinel(w)
	defer s.Close()
	replicas, err := s.Replicas(context.Background(), w.Name).Result()
	if err != nil || len(replicas) != 1 {
		t.Errorf("sentinel knows %d replicas: %v", len(replicas), err)
		return
	}
	r := redis.NewClient(&redis.Options{Addr: net.JoinHostPort(replicas[0]["ip"], replicas[0]["port"])})
	defer r.Close()
	if err := r.ReplicaOf(context.Background(), "127.0.0.1", "1").Err(); err != nil {
		t.Error(err)
	}
}

// isPromoted makes sure that there has been a failover.
func isPromoted(t *testing.T, w *testserver.Watched, old *testserver.Server) {
	s := sentinel(w)
	defer s.Close()
	now, err := s.GetMasterAddrByName(context.Background(), w.Name).Result()
	if err != nil || net.JoinHostPort(now[0], now[1]) == old.Addr() {
		t.Errorf("no replica was promoted: %v, %v", now, err)
	}
}

func sentinel(w *testserver.Watched) *redis.SentinelClient {
	addr, _, _ := strings.Cut(w.Sentinels, ",")
	return redis.NewSentinelClient(&redis.Options{Addr: addr})
}
