package testserver

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Prometheus starts a prometheus of its own for t, with the text of its
// configuration, and returns its URL. Where it is not installed the test is
// skipped; in CI it fails.
func Prometheus(t testing.TB, config string) string {
	t.Helper()
	path := find(t, "prometheus")
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, "prometheus", func() (*process, error) { return tryPrometheus(t, path, file) })
	return "http://" + p.addr
}

func tryPrometheus(t testing.TB, path, file string) (*process, error) {
	t.Helper()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	p := run(t, exec.Command(path, "--config.file", file, "--storage.tsdb.path", t.TempDir(), "--web.listen-address", addr, "--log.level", "warn"))
	p.addr = addr
	return p, p.answers(func() error {
		resp, err := http.Get("http://" + addr + "/-/ready")
		if err != nil {
			return err
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	})
}

// Promtool runs promtool, which must find nothing wrong with what it reads. Where
// it is not installed the test is skipped; in CI it fails.
func Promtool(t testing.TB, stdin string, args ...string) {
	t.Helper()
	cmd := exec.Command(find(t, "promtool"), args...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
