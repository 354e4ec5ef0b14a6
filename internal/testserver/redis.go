package testserver

import (
	"context"
	"fmt"
	"os/exec"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Redis starts a redis-server of its own for t, without persistence, and returns
// its address. args are added to its command line. Where no redis-server is
// installed the test is skipped; in CI it fails.
func Redis(t testing.TB, args ...string) string {
	t.Helper()
	return startRedis(t, find(t, "redis-server"), args).addr
}

func startRedis(t testing.TB, path string, args []string) *process {
	t.Helper()
	return start(t, "redis-server", func() (*process, error) { return tryRedis(t, path, args) })
}

func tryRedis(t testing.TB, path string, args []string) (*process, error) {
	t.Helper()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	own := []string{"--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--dir", t.TempDir(), "--save", "", "--appendonly", "no"}
	p := run(t, exec.Command(path, append(own, args...)...))
	p.addr = fmt.Sprintf("127.0.0.1:%d", port)
	return p, p.answersRedis()
}

func (p *process) answersRedis() error {
	client := redis.NewClient(&redis.Options{Addr: p.addr, MaxRetries: -1})
	defer client.Close()
	return p.answers(func() error { return client.Ping(context.Background()).Err() })
}
