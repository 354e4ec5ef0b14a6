package testserver

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Redis starts a redis-server of its own for t, without persistence, and returns
// its address. args are added to its command line. Where no redis-server is
// installed the test is skipped; in CI it fails.
func Redis(t testing.TB, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		missing(t, "redis-server")
	}
	for range 3 { // another process may take the port meanwhile
		addr, err := start(t, path, args)
		if err == nil {
			return addr
		}
		t.Log(err)
	}
	t.Fatal("redis-server does not start")
	return ""
}

func missing(t testing.TB, server string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is not installed", server)
	}
	t.Skipf("%s is not installed", server)
}

func start(t testing.TB, path string, args []string) (string, error) {
	t.Helper()
	port, err := freePort()
	if err != nil {
		return "", err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	args = append([]string{"--bind", "127.0.0.1", "--port", fmt.Sprint(port), "--dir", t.TempDir(), "--save", "", "--appendonly", "no"}, args...)
	cmd := exec.Command(path, args...)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		return "", err
	}
	exited := make(chan struct{})
	go func() {
		cmd.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-exited
	})
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	defer client.Close()
	deadline := time.After(10 * time.Second)
	for {
		if client.Ping(context.Background()).Err() == nil {
			return addr, nil
		}
		select {
		case <-exited:
			return "", fmt.Errorf("redis-server ended: %s", output.String())
		case <-deadline:
			return "", fmt.Errorf("redis-server on %s does not answer", addr)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
