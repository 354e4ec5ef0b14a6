package testserver

import (
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Network stands between clients and a server as a bad network does. It does
// nothing of the kind until it is told to.
type Network struct {
	Addr   string
	target string
	fault  atomic.Pointer[fault]
	closed chan struct{}

	mu    sync.Mutex
	conns map[net.Conn]bool
}

// fault is what a Network does to what passes.
type fault struct {
	delay   time.Duration // of every reply
	cut     float64       // share of the replies in whose place the connection ends
	swallow bool          // requests are read and go nowhere
}

// NewNetwork starts a Network in front of the server at target.
func NewNetwork(t testing.TB, target string) *Network {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Network{Addr: l.Addr().String(), target: target, closed: make(chan struct{}), conns: map[net.Conn]bool{}}
	p.Heal()
	var under sync.WaitGroup
	under.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			under.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		close(p.closed)
		p.mu.Lock()
		for c := range p.conns {
			c.Close()
		}
		p.mu.Unlock()
		under.Wait()
	})
	return p
}

// Delay has every reply come d late.
func (p *Network) Delay(d time.Duration) { p.fault.Store(&fault{delay: d}) }

// Cut lets every request through and ends the connection in place of a share,
// 0 to 1, of the replies.
func (p *Network) Cut(share float64) { p.fault.Store(&fault{cut: share}) }

// Swallow accepts connections and requests, and answers none.
func (p *Network) Swallow() { p.fault.Store(&fault{swallow: true}) }

// Heal lets everything through.
func (p *Network) Heal() { p.fault.Store(new(fault)) }

func (p *Network) serve(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer server.Close()
	if !p.keep(client, server) {
		return
	}
	defer p.drop(client, server)
	go func() { // ends with the connections
		p.carry(server, client, func(*fault) bool { return true })
		server.Close()
	}()
	p.carry(client, server, p.reply)
}

// reply is what becomes of a reply: it comes, perhaps late, or the connection ends.
func (p *Network) reply(f *fault) bool {
	if rand.Float64() < f.cut {
		return false
	}
	if f.delay > 0 {
		select {
		case <-time.After(f.delay):
		case <-p.closed:
		}
	}
	return true
}

// carry carries what from sends to to, for as long as goOn says.
func (p *Network) carry(to, from net.Conn, goOn func(*fault) bool) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil {
			return
		}
		f := p.fault.Load()
		if f.swallow {
			continue
		}
		if !goOn(f) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// keep has the connections closed at the end, which may be now.
func (p *Network) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.closed:
		return false
	default:
	}
	for _, c := range conns {
		p.conns[c] = true
	}
	return true
}

func (p *Network) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.conns, c)
	}
}
