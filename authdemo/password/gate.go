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

// A Gate bounds how many password computations run at once. The others wait,
// each address in a queue of its own, and addresses take turns: whoever sends
// a flood waits behind himself and not before everybody else.
//
// When all places are taken, a newcomer takes that of the last in the longest
// queue, unless its own would be as long: a few addresses cannot keep everybody
// else outside.
//
// An address here is an IPv4 address or an IPv6 /48, since one client may own all
// of that.
type Gate struct {
	cfg GateConfig

	mu      sync.Mutex
	free    int
	waiting int
	queues  map[netip.Prefix][]*waiter // the first is served first; none is empty
	turns   []netip.Prefix             // every key of queues once, next in turn first
}

// waiter is somebody in a queue. granted is closed when the slot is its own,
// displaced when somebody else got its place.
type waiter struct{ granted, displaced chan struct{} }

// NewGate returns an open Gate.
func NewGate(cfg GateConfig) (*Gate, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	return &Gate{cfg: cfg, free: cfg.Slots, queues: make(map[netip.Prefix][]*waiter)}, nil
}

// Enter waits for addr's turn. The caller must call leave once, when its
// computation is over. The error is [ErrFull], or the context's when the
// client went away while it waited.
func (g *Gate) Enter(ctx context.Context, addr netip.Addr) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	from := client(addr)
	w, err := g.join(from)
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
	if !g.abandon(from, w) {
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
	return g.waiting
}

// join takes a free slot, returning nil, or a place in the queue.
func (g *Gate) join(from netip.Prefix) (*waiter, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.free > 0 {
		g.free--
		return nil, nil
	}
	queue := g.queues[from]
	if len(queue) >= g.cfg.PerAddress || g.waiting >= g.cfg.Waiting && !g.displace(len(queue)+1) {
		return nil, ErrFull
	}
	if len(queue) == 0 {
		g.turns = append(g.turns, from)
	}
	w := &waiter{granted: make(chan struct{}), displaced: make(chan struct{})}
	g.queues[from] = append(queue, w)
	g.waiting++
	return w, nil
}

// displace takes the place of the last in the longest queue, if that is longer
// than length, and reports whether it did.
func (g *Gate) displace(length int) bool {
	var longest netip.Prefix
	for _, from := range g.turns {
		if n := len(g.queues[from]); n > length {
			longest, length = from, n
		}
	}
	queue := g.queues[longest]
	if len(queue) < length || len(queue) == 0 {
		return false
	}
	last := len(queue) - 1
	close(queue[last].displaced)
	g.remove(longest, last)
	return true
}

// leave hands the slot to the first waiter of the address whose turn it is,
// and sends that address to the end of the round.
func (g *Gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == 0 {
		g.free++
		return
	}
	from := g.turns[0]
	w := g.queues[from][0]
	g.remove(from, 0)
	if len(g.queues[from]) > 0 {
		g.turns = append(g.turns[1:], from)
	}
	close(w.granted)
}

// abandon takes w out of its queue and reports whether it was still in there.
func (g *Gate) abandon(from netip.Prefix, w *waiter) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(g.queues[from], w)
	if i < 0 {
		return false
	}
	g.remove(from, i)
	return true
}

func (g *Gate) remove(from netip.Prefix, i int) {
	g.waiting--
	g.queues[from] = slices.Delete(g.queues[from], i, i+1)
	if len(g.queues[from]) == 0 {
		delete(g.queues, from)
		g.turns = slices.DeleteFunc(g.turns, func(p netip.Prefix) bool { return p == from })
	}
}

func client(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := 48
	if addr.Is4() {
		bits = 32
	}
	p, _ := addr.Prefix(bits) // the zero Addr gives the zero Prefix: a queue of its own
	return p
}
