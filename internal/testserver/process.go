package testserver

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"testing"
	"time"

	"authguard/internal/testkit"
)

// process is a server that ends with its test.
type process struct {
	addr   string
	cmd    *exec.Cmd
	output *testkit.Buffer
	exited chan struct{}
}

// find is the path of a server. Where it is not installed the test is skipped;
// in CI it fails.
func find(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
		return path
	case os.Getenv("CI") != "":
		t.Fatalf("%s is not installed", name)
	default:
		t.Skipf("%s is not installed", name)
	}
	return ""
}

func run(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{cmd: cmd, output: new(testkit.Buffer), exited: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p.output, p.output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		cmd.Wait()
		close(p.exited)
	}()
	t.Cleanup(p.kill)
	return p
}

func (p *process) kill() {
	p.cmd.Process.Kill()
	<-p.exited
}

// answers waits until the server answers a ping.
func (p *process) answers(ping func() error) error {
	deadline := time.After(10 * time.Second)
	for {
		if ping() == nil {
			return nil
		}
		select {
		case <-p.exited:
			return fmt.Errorf("the server ended: %s", p.output)
		case <-deadline:
			return fmt.Errorf("the server on %s does not answer", p.addr)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// start tries a few times, because another process may take the port meanwhile.
func start(t testing.TB, name string, try func() (*process, error)) *process {
	t.Helper()
	for range 3 {
		p, err := try()
		if err == nil {
			return p
		}
		t.Log(err)
	}
	t.Fatalf("%s does not start", name)
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
