package testserver

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Watched is a primary with a replica, watched by three sentinels.
type Watched struct {
	Name      string // of the primary, as sentinels know it
	Sentinels string // their addresses, with commas
	primary   *process
}

// KillPrimary ends the primary without a word; the sentinels promote the replica.
func (w *Watched) KillPrimary() { w.primary.kill() }

// Sentinel starts a primary, a replica and three sentinels, and waits until the
// replica has caught up and the sentinels know of it.
func Sentinel(t testing.TB) *Watched {
	t.Helper()
	path := find(t, "redis-server")
	fast := []string{"--repl-diskless-sync-delay", "0"}
	primary := startRedis(t, path, fast)
	host, port, _ := net.SplitHostPort(primary.addr)
	replica := startRedis(t, path, append(fast, "--replicaof", host, port))
	r := redis.NewClient(&redis.Options{Addr: replica.addr})
	defer r.Close()
	wait(t, "the replica", func() bool {
		info, _ := r.Info(t.Context(), "replication").Result()
		return strings.Contains(info, "master_link_status:up")
	})
	w := &Watched{Name: "limits", primary: primary}
	var addrs []string
	for range 3 {
		addrs = append(addrs, startSentinel(t, path, w.Name, host, port))
	}
	w.Sentinels = strings.Join(addrs, ",")
	for _, addr := range addrs {
		s := redis.NewSentinelClient(&redis.Options{Addr: addr})
		defer s.Close()
		wait(t, "sentinel "+addr, func() bool {
			replicas, err := s.Replicas(t.Context(), w.Name).Result()
			others, err2 := s.Sentinels(t.Context(), w.Name).Result()
			return err == nil && err2 == nil && len(replicas) == 1 && len(others) == 2
		})
	}
	return w
}

func startSentinel(t testing.TB, path, name, host, port string) string {
	t.Helper()
	own, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("bind 127.0.0.1\nport %d\nsentinel monitor %s %s %s 2\nsentinel down-after-milliseconds %s 500\nsentinel failover-timeout %s 5000\n",
		own, name, host, port, name, name)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := run(t, exec.Command(path, config, "--sentinel"))
	p.addr = fmt.Sprintf("127.0.0.1:%d", own)
	if err := p.answersRedis(); err != nil {
		t.Fatal(err)
	}
	return p.addr
}

// wait polls until done, for as long as servers may take to find each other.
func wait(t testing.TB, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is not ready", what)
		}
	}
}
