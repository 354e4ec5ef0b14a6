package testserver

import (
	"fmt"
	"os/exec"
	"testing"
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
	for range 3 { // another process may take the port meanwhile
		p, err := tryRedis(t, path, args)
		if err == nil {
			return p
		}
		t.Log(err)
	}
	t.Fatal("redis-server does not start")
	return nil
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
	return p, p.answers()
}
