package testserver

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// nginxFrame holds what a recipe for the http block does not say. One process
// does everything, in a folder of its own.
const nginxFrame = `daemon off;
master_process off;
pid nginx.pid;
error_log stderr warn;
events {}
http {
    log_format saw '$remote_addr "$request" $status to "$upstream_addr" X-Forwarded-For "$http_x_forwarded_for"';
    access_log /dev/stdout saw;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
%s
}
`

// Nginx starts an nginx of its own for t. block is what its http block holds, of
// which one server listens on addr. It returns the address and the log of
// requests. Where no nginx is installed the test is skipped; in CI it fails.
func Nginx(t testing.TB, block func(addr string) string) (addr string, log fmt.Stringer) {
	t.Helper()
	path := find(t, "nginx")
	p := start(t, "nginx", func() (*process, error) { return tryNginx(t, path, block) })
	return p.addr, p.output
}

func tryNginx(t testing.TB, path string, block func(string) string) (*process, error) {
	t.Helper()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	addr, dir := fmt.Sprintf("127.0.0.1:%d", port), t.TempDir()
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, nginxFrame, block(addr)), 0o600); err != nil {
		return nil, err
	}
	p := run(t, exec.Command(path, "-p", dir, "-c", file, "-e", "stderr"))
	p.addr = addr
	return p, p.answers(func() error { // it listens before it writes its number
		_, err := os.Stat(filepath.Join(dir, "nginx.pid"))
		return err
	})
}
