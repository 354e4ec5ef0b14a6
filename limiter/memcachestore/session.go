package memcachestore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"authguard/limiter"
)

// A session is a client that serves one exchange at a time. The library has no
// contexts; but since nobody else uses the session's connections meanwhile, they
// can obey the context of the exchange.
type session struct {
	client *memcache.Client
	ctx    context.Context
}

type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func newSession(servers servers, dial dialer) *session {
	s := &session{client: memcache.NewFromSelector(servers)}
	s.client.DialContext = func(_ context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(s.ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &sessionConn{conn, s}, nil
	}
	return s
}

type sessionConn struct {
	net.Conn
	session *session
}

// SetDeadline is called by the client before each step of an exchange. It sets the
// deadline of the whole, so that a server that trickles cannot win time.
func (c *sessionConn) SetDeadline(time.Time) error {
	deadline, _ := c.session.ctx.Deadline()
	return c.Conn.SetDeadline(deadline)
}

// maxSessions bounds the exchanges under way and so the connections to a server,
// which takes 1,024 unless told otherwise.
const maxSessions = 64

// pool keeps sessions for the next exchanges.
type pool struct {
	places chan struct{}
	open   func() *session
	mu     sync.Mutex
	idle   []*session // the last one was used last

	full, answers atomic.Uint64 // how often there was no place, and an answer came
}

func newPool(open func() *session) *pool {
	return &pool{places: make(chan struct{}, maxSessions), open: open}
}

// do makes one exchange, which ends with the deadline of ctx. Whether it was
// executed is unknown when it fails without an answer of the server.
func (p *pool) do(ctx context.Context, exchange func(*memcache.Client) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("memcachestore: %w", err)
	}
	select {
	case p.places <- struct{}{}:
	default:
		p.full.Add(1)
		select {
		case p.places <- struct{}{}:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return fmt.Errorf("memcachestore: %w", ctx.Err())
			}
			return fmt.Errorf("memcachestore: %w", limiter.ErrOverloaded)
		}
	}
	defer func() { <-p.places }()
	s := p.get()
	s.ctx = ctx
	err := exchange(s.client)
	s.ctx = nil
	if !answered(err) {
		s.client.Close()
		p.close() // whatever broke this connection has probably broken the others
		return fault(err)
	}
	p.answers.Add(1)
	p.put(s)
	return err
}

// watch begins a call. What it returns tells the call's error: time that ran out while
// others were answered, and so many that there was no place, went to a crowd, which
// anybody can send. It is no outage.
func (p *pool) watch() (tell func(error) error) {
	full, answers := p.full.Load(), p.answers.Load()
	return func(err error) error {
		if errors.Is(err, context.DeadlineExceeded) && p.full.Load() != full && p.answers.Load() != answers {
			return fmt.Errorf("%w: %w", err, limiter.ErrOverloaded)
		}
		return err
	}
}

// repeatable is do for what may be done twice: a connection that the server has
// closed while it was idle, as in a restart, is noticed here and costs nothing.
func (p *pool) repeatable(ctx context.Context, exchange func(*memcache.Client) error) error {
	err := p.do(ctx, exchange)
	if answered(err) || errors.Is(err, limiter.ErrOverloaded) || errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil {
		return err
	}
	return p.do(ctx, exchange)
}

func (p *pool) get() *session {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.idle) - 1
	if n < 0 {
		return p.open()
	}
	s := p.idle[n]
	p.idle = p.idle[:n]
	return s
}

func (p *pool) put(s *session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle = append(p.idle, s)
}

// close closes what is idle.
func (p *pool) close() {
	p.mu.Lock()
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	for _, s := range idle {
		s.client.Close()
	}
}

// answered reports that the server answered, if only by a no.
func answered(err error) bool {
	return err == nil || errors.Is(err, memcache.ErrCacheMiss) || conflict(err)
}

// conflict reports that a value was not stored because somebody else has written
// or the key is gone.
func conflict(err error) bool {
	return errors.Is(err, memcache.ErrCASConflict) || errors.Is(err, memcache.ErrNotStored) || errors.Is(err, memcache.ErrCacheMiss)
}

// fault is err of the client, as callers see it. A deadline is always
// context.DeadlineExceeded.
func fault(err error) error {
	var timeout net.Error
	if errors.As(err, new(*memcache.ConnectTimeoutError)) || errors.As(err, &timeout) && timeout.Timeout() {
		return fmt.Errorf("memcachestore: %w: %w", context.DeadlineExceeded, err)
	}
	return fmt.Errorf("memcachestore: %w", err)
}
