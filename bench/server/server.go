package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"authguard/limiter/redisstore"
)

// A Server is a redis-server on a free port of loopback, without persistence.
type Server struct {
	Addr   string
	cmd    *exec.Cmd
	dir    string
	exited chan struct{}
	info   *redis.Client
}

// Start starts one. The caller must Close it.
func Start() (*Server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, errors.New("server: redis-server is not installed (make servers)")
	}
	for range 3 { // another process may take the port meanwhile
		var s *Server
		if s, err = start(path); err == nil {
			return s, nil
		}
	}
	return nil, err
}

func start(path string) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	dir, err := os.MkdirTemp("", "authguard-bench-")
	if err != nil {
		return nil, fmt.Errorf("server: %w", err)
	}
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), dir: dir, exited: make(chan struct{})}
	s.cmd = exec.Command(path, "--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir, "--save", "", "--appendonly", "no")
	if err := s.cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("server: %w", err)
	}
	s.info = redis.NewClient(&redis.Options{Addr: s.Addr, PoolSize: 1})
	running.Store(s, nil)
	go func() {
		s.cmd.Wait()
		close(s.exited)
	}()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		select {
		case <-s.exited:
			s.Close()
			return nil, errors.New("server: redis-server ended at once")
		default:
		}
		conn, err := net.Dial("tcp", s.Addr)
		if err != nil {
			continue // not yet
		}
		conn.Close()
		if s.info.Ping(context.Background()).Err() == nil {
			return s, nil
		}
	}
	s.Close()
	return nil, errors.New("server: redis-server does not answer")
}

// Close ends the server and forgets what it held.
func (s *Server) Close() {
	s.info.Close()
	s.cmd.Process.Kill()
	<-s.exited
	os.RemoveAll(s.dir)
	running.Delete(s)
}

// running are the servers that were started and not closed.
var running sync.Map

// CloseAll ends what still runs: for a program that is about to be ended itself.
func CloseAll() {
	running.Range(func(s, _ any) bool {
		s.(*Server).Close()
		return true
	})
}

// Client is a client as redisstore makes it, with a connection for each of so
// many callers, so that none waits for one. It is patient: a busy machine is no
// reason to give a call up.
func (s *Server) Client(callers int) (*redis.Client, error) {
	const patience = "dial_timeout=60s&read_timeout=60s&write_timeout=60s&pool_timeout=60s"
	client, err := redisstore.NewClient(fmt.Sprintf("redis://%s?pool_size=%d&%s", s.Addr, max(10, callers), patience))
	if err != nil {
		return nil, err
	}
	return client.(*redis.Client), nil // which it is of one server
}

// CPU is what the server has used of the processors so far.
func (s *Server) CPU() (time.Duration, error) {
	info, err := s.section("cpu")
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		seconds, err := strconv.ParseFloat(info[field], 64)
		if err != nil {
			return 0, fmt.Errorf("server: %s is %q", field, info[field])
		}
		total += time.Duration(seconds * float64(time.Second))
	}
	return total, nil
}

// Version of the server.
func (s *Server) Version() (string, error) {
	info, err := s.section("server")
	return info["redis_version"], err
}

// Flush forgets all keys; scripts stay.
func (s *Server) Flush() error { return s.info.FlushAll(context.Background()).Err() }

// MemoryUsage is what the server says that a key takes, in bytes.
func (s *Server) MemoryUsage(key string) (int64, error) {
	return s.info.MemoryUsage(context.Background(), key).Result()
}

func (s *Server) section(name string) (map[string]string, error) {
	text, err := s.info.Info(context.Background(), name).Result()
	if err != nil {
		return nil, fmt.Errorf("server: INFO %s: %w", name, err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[k] = v
		}
	}
	return fields, nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
