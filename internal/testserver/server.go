//go:build unix

package testserver

import (
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// Server is a redis-server that a test may kill, start again and pause.
type Server struct {
	t testing.TB
	p *process
}

// RedisServer starts what [Redis] starts, to be ill-treated.
func RedisServer(t testing.TB, args ...string) *Server {
	t.Helper()
	return &Server{t, startRedis(t, find(t, "redis-server"), args)}
}

// Addr is the server's address, the same after a restart.
func (s *Server) Addr() string { return s.p.addr }

// Kill ends the server without a word.
func (s *Server) Kill() { s.p.kill() }

// Restart starts the server again after [Server.Kill], with the same address,
// folder and arguments. What it had written into its folder it reads.
func (s *Server) Restart() {
	s.t.Helper()
	var err error
	for range 5 { // somebody's connection may have got its port meanwhile
		p := run(s.t, exec.Command(s.p.cmd.Path, s.p.cmd.Args[1:]...))
		p.addr = s.p.addr
		if err = p.answersRedis(); err == nil {
			s.p = p
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	s.t.Fatalf("redis-server does not start again: %v", err)
}

// Pause stops the server as it is: the system still accepts connections and
// requests in its name, until its queues are full.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Continue ends [Server.Pause]. The server then does all that was asked of it
// meanwhile, also by clients that have gone.
func (s *Server) Continue() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.p.cmd.Process.Signal(sig); err != nil {
		s.t.Fatalf("redis-server: %v: %v", sig, err)
	}
}

// Primary is the primary that was watched first, to be ill-treated.
func (w *Watched) Primary(t testing.TB) *Server { return &Server{t, w.primary} }
