package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"
)

// Memcached starts a memcached of its own for t, and returns its address. args are
// added to its command line. Where no memcached is installed the test is skipped;
// in CI it fails.
func Memcached(t testing.TB, args ...string) string {
	t.Helper()
	addr, _ := MortalMemcached(t, args...)
	return addr
}

// MortalMemcached is Memcached with a way to end it without a word.
func MortalMemcached(t testing.TB, args ...string) (addr string, kill func()) {
	t.Helper()
	path := find(t, "memcached")
	p := start(t, "memcached", func() (*process, error) { return tryMemcached(t, path, args) })
	return p.addr, p.kill
}

func tryMemcached(t testing.TB, path string, args []string) (*process, error) {
	t.Helper()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	own := []string{"-l", "127.0.0.1", "-p", fmt.Sprint(port), "-U", "0"}
	if os.Getuid() == 0 {
		own = append(own, "-u", "nobody") // it refuses to run as root
	}
	p := run(t, exec.Command(path, append(own, args...)...))
	p.addr = fmt.Sprintf("127.0.0.1:%d", port)
	return p, p.answers(memcache.New(p.addr).Ping)
}
