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
	return MortalMemcached(t, args...).Addr
}

// Mortal is a memcached that is to be killed.
type Mortal struct {
	Addr    string
	process *process
	start   func()
}

// Kill ends it without a word.
func (m *Mortal) Kill() { m.process.kill() }

// Restart starts it anew at its address, where it remembers nothing.
func (m *Mortal) Restart() { m.start() }

// MortalMemcached is [Memcached], to be killed.
func MortalMemcached(t testing.TB, args ...string) *Mortal {
	t.Helper()
	path := find(t, "memcached")
	m := new(Mortal)
	port := 0
	m.start = func() {
		m.process = start(t, "memcached", func() (*process, error) {
			if m.Addr == "" {
				var err error
				if port, err = freePort(); err != nil {
					return nil, err
				}
			}
			return tryMemcached(t, path, port, args)
		})
		m.Addr = m.process.addr
	}
	m.start()
	return m
}

func tryMemcached(t testing.TB, path string, port int, args []string) (*process, error) {
	t.Helper()
	own := []string{"-l", "127.0.0.1", "-p", fmt.Sprint(port), "-U", "0"}
	if os.Getuid() == 0 {
		own = append(own, "-u", "nobody") // it refuses to run as root
	}
	p := run(t, exec.Command(path, append(own, args...)...))
	p.addr = fmt.Sprintf("127.0.0.1:%d", port)
	return p, p.answers(memcache.New(p.addr).Ping)
}
