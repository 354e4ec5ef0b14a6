package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A line gathers the calls of concurrent goroutines. While one script is under
// way the others wait in it; then the first of them takes all along in the next
// script. So a lone caller waits for nobody, and many share one round trip and
// one start of the script.
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
	lead  chan []*ticket // told whom to take along, itself included
	done  chan struct{}  // closed when reply or err is there
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
		s.lead(ctx, []*ticket{t})
		return t.reply, t.err
	}
	for {
		select {
		case together := <-t.lead:
			// Others rely on the script, whatever becomes of this caller.
			go s.leadFor(context.WithoutCancel(ctx), together)
		case <-t.done:
			return t.reply, t.err
		case <-ctx.Done():
			return "", s.giveUp(ctx, t)
		}
	}
}

// giveUp ends a call whose time is over.
func (s *Store) giveUp(ctx context.Context, t *ticket) error {
	if s.line.leave(t) {
		return fmt.Errorf("redisstore: %w while it waited to be sent", ctx.Err())
	}
	select {
	case together := <-t.lead: // the lead came at that moment: without this call, to the next
		s.line.pass(together[1:])
		return fmt.Errorf("redisstore: %w while it waited to be sent", ctx.Err())
	default:
		t.call.lost = true
		return fmt.Errorf("redisstore: %w while it was under way", ctx.Err())
	}
}

// join takes a place in line; it reports true if there is no line, and the
// caller leads at once.
func (l *line) join(t *ticket) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.busy {
		l.busy = true
		return true
	}
	t.lead, t.done = make(chan []*ticket, 1), make(chan struct{})
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

// next has the first in line lead, or ends the line.
func (l *line) next() {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.waiting), maxTogether)
	together := append([]*ticket(nil), l.waiting[:n]...)
	l.waiting = append(l.waiting[:0], l.waiting[n:]...)
	l.hand(together)
}

// pass hands the lead on to those who were to go with somebody who gave up.
func (l *line) pass(together []*ticket) {
	if len(together) == 0 {
		l.next()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hand(together)
}

func (l *line) hand(together []*ticket) {
	if len(together) == 0 {
		l.busy = false
		return
	}
	together[0].lead <- together
}

// leadFor leads on behalf of others, who have waited already.
func (s *Store) leadFor(ctx context.Context, together []*ticket) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.lead(ctx, together)
}

// lead sends the calls of together in one script, tells them, and hands the lead on.
func (s *Store) lead(ctx context.Context, together []*ticket) {
	defer s.line.next()
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
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	replies, err := cmd.StringSlice()
	if err == nil && len(replies) != len(together) {
		err = fmt.Errorf("redisstore: the script answered %d of %d calls", len(replies), len(together))
	}
	return replies, err
}
