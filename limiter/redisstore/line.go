package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A line gathers the calls of concurrent goroutines. While one script is under
// way the others wait in it, and then go together in the next. So a lone caller
// waits for nobody, and many share one round trip and one start of the script.
//
// Who has waited is sent for by a goroutine of the store's own: no caller, who may
// give up at any moment, is relied upon to go on.
type line struct {
	mu      sync.Mutex
	busy    bool // a script is under way
	waiting []*ticket
}

// ticket is one call in line.
type ticket struct {
	call  *call
	mode  string
	reply string
	err   error
	done  chan struct{} // closed when reply or err is there; nil for a lone caller
}

// maxTogether bounds the calls of one script, for which the server does nothing else.
const maxTogether = 128

// call has the script decide c, together with others who come meanwhile.
func (s *Store) call(ctx context.Context, c *call, mode string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	t := &ticket{call: c, mode: mode}
	if s.line.join(t) {
		s.send(ctx, []*ticket{t})
		return t.reply, t.err
	}
	select {
	case <-t.done:
		return t.reply, t.err
	case <-ctx.Done():
	}
	if s.line.leave(t) {
		return "", fmt.Errorf("redisstore: %w while it waited to be sent", ctx.Err())
	}
	c.lost = true
	return "", fmt.Errorf("redisstore: %w while it was under way", ctx.Err())
}

// join takes a place in line; it reports true if there is no line, and the
// caller sends at once.
func (l *line) join(t *ticket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy {
		l.busy = true
		return true
	}
	t.done = make(chan struct{})
	l.waiting = append(l.waiting, t)
	return false
}

// leave gives a place in line up, and reports whether it was still there.
func (l *line) leave(t *ticket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting {
		if w == t {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// next takes those out of the line who go together next, or ends it.
func (l *line) next() []*ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.waiting), maxTogether)
	together := append([]*ticket(nil), l.waiting[:n]...)
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	l.busy = n > 0
	return together
}

// send has one script decide the calls of together, tells them, and sees to those
// who have come meanwhile.
func (s *Store) send(ctx context.Context, together []*ticket) {
	defer func() {
		if next := s.line.next(); len(next) > 0 {
			go s.sendWaiting(next)
		}
	}()
	replies, err := s.run(ctx, together)
	for i, t := range together {
		t.err = err
		if err == nil {
			t.reply, t.err = readOne(replies[i])
		}
		if t.done != nil {
			close(t.done)
		}
	}
}

// sendWaiting sends for calls that have waited, whatever becomes of their callers.
func (s *Store) sendWaiting(together []*ticket) {
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()
	s.send(ctx, together)
}

// readOne tells a reply of one call from its error.
func readOne(reply string) (string, error) {
	if body, ok := strings.CutPrefix(reply, "+"); ok {
		return body, nil
	}
	return "", fmt.Errorf("redisstore: script: %s", strings.TrimPrefix(reply, "-"))
}

// once is a command that the client must not send a second time.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

// run calls the script. Only an answer that it is not known there, and so did
// nothing, has it sent again, with its source.
func (s *Store) run(ctx context.Context, together []*ticket) ([]string, error) {
	laws, keys, charges := uint64(0), 0, 0
	for _, t := range together {
		laws |= t.call.laws
		keys += len(t.call.keys)
		charges += len(t.call.args)
	}
	script := s.scripts.of(laws)
	args := make([]any, 0, 4+keys+charges+2*len(together))
	args = append(args, "evalsha", script.sha, keys)
	for _, t := range together {
		for _, k := range t.call.keys {
			args = append(args, k)
		}
	}
	now := ""
	if s.now != nil {
		now = strconv.FormatInt(s.now().UnixMicro(), 10)
	}
	args = append(args, now)
	for _, t := range together {
		args = append(args, t.mode, len(t.call.args))
		for _, a := range t.call.args {
			args = append(args, a)
		}
	}
	cmd := once{redis.NewCmd(ctx, args...)}
	err := s.client.Process(ctx, cmd)
	if errors.Is(err, redis.ErrNoScript) || redis.HasErrorPrefix(err, "NOSCRIPT") {
		args[0], args[1] = "eval", script.source
		cmd = once{redis.NewCmd(ctx, args...)}
		err = s.client.Process(ctx, cmd)
	}
	if err != nil {
		return nil, fault(err)
	}
	replies, err := cmd.StringSlice()
	if err == nil && len(replies) != len(together) {
		err = fmt.Errorf("redisstore: the script answered %d of %d calls", len(replies), len(together))
	}
	return replies, err
}

// fault is err of the client, as callers see it. A call's deadline, which its
// socket may notice before its context does, is always context.DeadlineExceeded.
func fault(err error) error {
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("redisstore: %w: %w", context.DeadlineExceeded, err)
	}
	return fmt.Errorf("redisstore: %w", err)
}
