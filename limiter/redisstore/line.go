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
	mu     sync.Mutex
	queues map[*redis.Client]*queue // by node; there while a message is under way
}

// queue is who waits for a node, and how many messages it has answered meanwhile.
type queue struct {
	waiting []*part
	answers int
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
		q, busy := l.queues[p.node]
		switch {
		case !busy:
			l.queues[p.node] = new(queue)
			fallthrough
		case slices.ContainsFunc(free, p.sameNode):
			free = append(free, p)
		default:
			p.done = make(chan struct{})
			p.queue, p.answers = q, q.answers
			q.waiting = append(q.waiting, p)
		}
	}
	return free
}

func (p *part) sameNode(other *part) bool { return p.node == other.node }

// leave gives a place in line up. It reports whether it was still there, and whether
// the node has answered others since p came: then it is up, and p came in a crowd.
func (l *line) leave(p *part) (waited, crowded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(p.queue.waiting, p); i >= 0 {
		waited = true
		p.queue.waiting = slices.Delete(p.queue.waiting, i, i+1)
	}
	return waited, p.queue.answers > p.answers
}

// next takes those out of the line who go together next, or ends it. answered is
// what became of the message before.
func (l *line) next(node *redis.Client, answered bool) []*part {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.queues[node]
	if answered {
		q.answers++
	}
	if len(q.waiting) == 0 {
		delete(l.queues, node)
		return nil
	}
	n, work := 0, 0
	for n < min(len(q.waiting), maxTogether) && (n == 0 || work+q.waiting[n].work <= maxWork) {
		work += q.waiting[n].work
		n++
	}
	together := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
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
	answered := false
	defer func() {
		if next := s.line.next(node, answered); next != nil {
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
		err := g.err()
		answered = answered || err == nil
		s.notice(ctx, err)
	}
}
