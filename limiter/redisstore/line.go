package redisstore

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A line gathers the calls of concurrent goroutines. While one message is under way
// to a node the others wait for it, and then go together in the next. So a lone
// caller waits for nobody, and many share one round trip and one start of the script.
//
// Who has waited is sent for by a goroutine of the store's own: no caller, who may
// give up at any moment, is relied upon to go on.
type line struct {
	mu      sync.Mutex
	waiting map[*redis.Client][]*part // by node; the entry is there while a message is under way
}

// A message has at most so many calls and so much work, since a server does nothing
// else meanwhile: some 3 ms. A call that has more goes alone.
const (
	maxTogether = 128
	maxWork     = 256
)

// join takes places in line. It returns the parts whose nodes are free, which the
// caller must send.
func (l *line) join(parts []*part) (free []*part) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range parts {
		waiting, busy := l.waiting[p.node]
		switch {
		case !busy:
			l.waiting[p.node] = nil
			fallthrough
		case slices.ContainsFunc(free, p.sameNode):
			free = append(free, p)
		default:
			p.done = make(chan struct{})
			l.waiting[p.node] = append(waiting, p)
		}
	}
	return free
}

func (p *part) sameNode(other *part) bool { return p.node == other.node }

// leave gives a place in line up, and reports whether it was still there.
func (l *line) leave(p *part) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting[p.node], p)
	if i < 0 {
		return false
	}
	l.waiting[p.node] = slices.Delete(l.waiting[p.node], i, i+1)
	return true
}

// next takes those out of the line who go together next, or ends it.
func (l *line) next(node *redis.Client) []*part {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.waiting[node]
	if len(waiting) == 0 {
		delete(l.waiting, node)
		return nil
	}
	n, work := 0, 0
	for n < min(len(waiting), maxTogether) && (n == 0 || work+waiting[n].work <= maxWork) {
		work += waiting[n].work
		n++
	}
	together := slices.Clone(waiting[:n])
	l.waiting[node] = slices.Delete(waiting, 0, n)
	return together
}

// sendAll sends to all nodes at one time.
func (s *Store) sendAll(ctx context.Context, parts []*part) {
	var wg sync.WaitGroup
	for len(parts) > 0 {
		var here, others []*part
		for _, p := range parts {
			if p.sameNode(parts[0]) {
				here = append(here, p)
			} else {
				others = append(others, p)
			}
		}
		if parts = others; len(parts) > 0 {
			wg.Go(func() { s.send(ctx, here) })
		} else {
			s.send(ctx, here)
		}
	}
	wg.Wait()
}

// sendWaiting sends for calls that have waited, whatever becomes of their callers.
func (s *Store) sendWaiting(parts []*part) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	s.send(ctx, parts)
}

// send has parts of one node decided, and tells whoever waits for them. Those that
// must be sent again, to another node perhaps, hold up nobody else.
func (s *Store) send(ctx context.Context, parts []*part) {
	groups := s.groups(parts)
	s.sendOnce(ctx, parts[0].node, groups)
	var wg sync.WaitGroup
	for i, g := range groups {
		switch again := s.untouched(g.err()); {
		case !again:
			g.tell()
		case i == len(groups)-1:
			s.follow(ctx, g)
		default:
			wg.Go(func() { s.follow(ctx, g) })
		}
	}
	wg.Wait()
}

// sendOnce sends one message, and then sees to those who have come meanwhile.
func (s *Store) sendOnce(ctx context.Context, node *redis.Client, groups []*group) {
	defer func() {
		if next := s.line.next(node); next != nil {
			go s.sendWaiting(next)
		}
	}()
	if len(groups) == 1 {
		node.Process(ctx, groups[0].cmd)
	} else {
		pipe := node.Pipeline()
		for _, g := range groups {
			pipe.Process(ctx, g.cmd)
		}
		pipe.Exec(ctx)
	}
	for _, g := range groups {
		s.notice(ctx, g.err())
	}
}
