package password

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// ErrFull means that there is no room at the gate, or none came free in time.
var ErrFull = errors.New("password: too many computations are waiting")

// GateConfig says how many may pass a [Gate] and wait before it.
type GateConfig struct {
	Slots      int           // computations at once
	Waiting    int           // places to wait
	PerAddress int           // of these, places for one address
	MaxWait    time.Duration // after which a waiter gives up
}

func (c GateConfig) validate() error {
	switch {
	case c.Slots < 1:
		return fmt.Errorf("password: Slots is %d, want at least 1", c.Slots)
	case c.Waiting < 0:
		return fmt.Errorf("password: Waiting is %d, want at least 0", c.Waiting)
	case c.PerAddress < 0:
		return fmt.Errorf("password: PerAddress is %d, want at least 0", c.PerAddress)
	case c.MaxWait < 0:
		return fmt.Errorf("password: MaxWait is %v, want at least 0", c.MaxWait)
	}
	return nil
}

// A Client is who wants to pass a [Gate].
type Client struct {
	Addr    netip.Addr
	Trusted bool // known as a device of the account that it tries
}

// A Gate bounds how many password computations run at once. The others wait,
// each address in a queue of its own, and addresses take turns: whoever sends
// a flood waits behind himself and not before everybody else.
//
// Trusted clients go first, whatever strangers send. Of four who go while strangers
// wait one is a stranger all the same, so that nobody with devices of his own can
// keep all strangers outside.
//
// When all places are taken, a newcomer takes that of the last in the longest
// queue, unless its own would be as long: a few addresses cannot keep everybody
// else outside. A trusted client takes a stranger's, first at its own address, and
// no stranger takes a trusted client's.
//
// An address here is an IPv4 address or an IPv6 /48, since one client may own all
// of that.
type Gate struct {
	cfg GateConfig

	mu                 sync.Mutex
	free               int
	strangers, trusted line
	inARow             int // trusted clients who went while strangers waited
}

// maxInARow trusted clients go before a stranger does.
const maxInARow = 3

// waiter is somebody in a queue. granted is closed when the slot is its own,
// displaced when somebody else got its place.
type waiter struct{ granted, displaced chan struct{} }

// NewGate returns an open Gate.
func NewGate(cfg GateConfig) (*Gate, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Gate{cfg: cfg, free: cfg.Slots, strangers: newLine(), trusted: newLine()}, nil
}

// Enter waits for c's turn. The caller must call leave once, when its
// computation is over. The error is [ErrFull], or the context's when the
// client went away while it waited.
func (g *Gate) Enter(ctx context.Context, c Client) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	from, l := prefixOf(c.Addr), &g.strangers
	if c.Trusted {
		l = &g.trusted
	}
	w, err := g.join(l, from)
	if err != nil {
		return nil, err
	}
	if w == nil {
		return g.leave, nil
	}
	timeout := time.NewTimer(g.cfg.MaxWait)
	defer timeout.Stop()
	select {
	case <-w.granted:
		return g.leave, nil
	case <-w.displaced:
		return nil, ErrFull
	case <-timeout.C:
		err = ErrFull
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !g.abandon(l, from, w) {
		select {
		case <-w.granted: // at the very moment of giving up
			g.leave()
		default: // displaced, at that moment
		}
	}
	return nil, err
}

// Len is how many are waiting.
func (g *Gate) Len() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting()
}

func (g *Gate) waiting() int { return g.strangers.waiting + g.trusted.waiting }

// join takes a free slot, returning nil, or a place in the line l.
func (g *Gate) join(l *line, from netip.Prefix) (*waiter, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 {
		g.free--
		return nil, nil
	}
	here := len(g.strangers.queues[from]) + len(g.trusted.queues[from])
	switch {
	case here >= g.cfg.PerAddress && !(l == &g.trusted && g.strangers.displace(from)),
		g.waiting() >= g.cfg.Waiting && !g.makeRoom(l, from):
		return nil, ErrFull
	}
	return l.add(from), nil
}

// makeRoom displaces somebody for a newcomer in l, and reports whether it could.
func (g *Gate) makeRoom(l *line, from netip.Prefix) bool {
	own := len(l.queues[from]) + 1
	if l == &g.trusted && g.strangers.waiting > 0 {
		l, own = &g.strangers, 0
	}
	longest, length := l.longest()
	return length > own && l.displace(longest)
}

// leave hands the slot to the next.
func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := &g.trusted
	switch {
	case g.waiting() == 0:
		g.free++
		return
	case g.strangers.waiting == 0:
		g.inARow = 0
	case g.trusted.waiting == 0 || g.inARow == maxInARow:
		l, g.inARow = &g.strangers, 0
	default:
		g.inARow++
	}
	close(l.next().granted)
}

// abandon takes w out of its queue and reports whether it was still in there.
func (g *Gate) abandon(l *line, from netip.Prefix, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(l.queues[from], w)
	if i >= 0 {
		l.remove(from, i)
	}
	return i >= 0
}

func prefixOf(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 48
	if addr.Is4() {
		bits = 32
	}
	p, _ := addr.Prefix(bits) // the zero Addr gives the zero Prefix: a queue of its own
	return p
}
