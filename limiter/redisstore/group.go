package redisstore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// group is what one run of a script decides: parts of one slot on a cluster, any
// parts elsewhere.
type group struct {
	parts  []*part
	script script
	cmd    once
}

// once is a command that the client must not send a second time. A pipeline with
// such a command in it is not sent a second time either.
type once struct{ *redis.Cmd }

func (once) NoRetry() bool { return true }

func newOnce(ctx context.Context, args []any) once {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetStepCount(1) // or a cluster client asks some node for all its commands first, for up to 5 s
	return once{cmd}
}

// groups puts parts of one node together by their slots.
func (s *Store) groups(parts []*part) []*group {
	if s.cluster == nil || len(parts) == 1 {
		return []*group{s.group(parts)}
	}
	var slots []int
	of := map[int][]*part{}
	for _, p := range parts {
		if of[p.slot] == nil {
			slots = append(slots, p.slot)
		}
		of[p.slot] = append(of[p.slot], p)
	}
	groups := make([]*group, len(slots))
	for i, slot := range slots {
		groups[i] = s.group(of[slot])
	}
	return groups
}

func (s *Store) group(parts []*part) *group {
	laws, keys := uint64(0), 0
	for _, p := range parts {
		laws |= p.laws
		keys += len(p.keys)
	}
	g := &group{parts: parts, script: s.scripts.of(laws)}
	args := make([]any, 0, 4+keys+len(parts))
	args = append(args, "evalsha", g.script.sha, keys)
	for _, p := range parts {
		for _, k := range p.keys {
			args = append(args, k)
		}
	}
	now := ""
	if s.now != nil {
		now = strconv.FormatInt(s.now().UnixMicro(), 10)
	}
	args = append(args, now)
	for _, p := range parts {
		args = append(args, p.packed)
	}
	g.cmd = newOnce(context.Background(), args)
	return g
}

// err is nil if the group was answered. A pipeline that breaks off marks commands
// as failed although their answers are here.
func (g *group) err() error {
	if g.cmd.Val() != nil {
		return nil
	}
	return g.cmd.Err()
}

// untouched reports that a group was certainly not executed where it was sent, and
// may be elsewhere, or later, or with its source.
func (s *Store) untouched(err error) bool {
	if err == nil {
		return false
	}
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return true
	}
	if s.cluster == nil {
		return false
	}
	for _, prefix := range []string{"MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "READONLY", "MASTERDOWN", "LOADING"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

// follow sends a group that was not executed again, until it is or time is over.
func (s *Store) follow(ctx context.Context, g *group) {
	const most = 16 * time.Millisecond
	for pause := time.Millisecond; s.untouched(g.err()) && ctx.Err() == nil; {
		args, err := g.cmd.Args(), g.err()
		switch {
		case redis.HasErrorPrefix(err, "NOSCRIPT"):
			args[0], args[1] = "eval", g.script.source
		case redis.HasErrorPrefix(err, "MOVED"), redis.HasErrorPrefix(err, "ASK"):
		case redis.HasErrorPrefix(err, "TRYAGAIN") && len(g.parts) > 1:
			// While a slot moves, keys of both nodes cannot be asked about together.
			s.followEach(ctx, g.parts)
			return
		default:
			wait := time.NewTimer(pause)
			select {
			case <-ctx.Done():
				wait.Stop()
			case <-wait.C:
			}
			if ctx.Err() != nil {
				continue
			}
			pause = min(2*pause, most)
		}
		g.cmd = newOnce(ctx, args)
		s.client.Process(ctx, g.cmd)
	}
	g.tell()
}

func (s *Store) followEach(ctx context.Context, parts []*part) {
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			g := s.group(parts[i : i+1])
			s.client.Process(ctx, g.cmd)
			s.follow(ctx, g)
		})
	}
	wg.Wait()
}

// tell gives each part its answer.
func (g *group) tell() {
	err := g.err()
	if err != nil {
		err = fault(err)
	}
	reply, ok := g.cmd.Val().(string)
	if err == nil && !ok {
		err = fmt.Errorf("redisstore: the script answered a %T", g.cmd.Val())
	}
	for _, p := range g.parts {
		if p.err = err; err == nil {
			p.answer, reply, p.err = cutAnswer(reply)
		}
		if p.done != nil {
			close(p.done)
		}
	}
}

// notice has a cluster's client look for the nodes anew, in the background, if one
// of them did not answer.
func (s *Store) notice(ctx context.Context, err error) {
	if s.cluster == nil || err == nil {
		return
	}
	if answer := redis.Error(nil); !errors.As(err, &answer) {
		s.cluster.ReloadState(ctx)
	}
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
