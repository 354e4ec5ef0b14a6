package redisstore

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"authguard/limiter"
)

var _ limiter.Noter = (*Store)(nil)

// A list is a sorted set of keys by the microsecond in which their notes end, and a
// hash of their labels. Both lie in one slot.

//go:embed note.lua
var noteScript string

//go:embed noted.lua
var notedScript string

const strikeScript = `redis.call('ZREM', KEYS[1], unpack(ARGV))
redis.call('HDEL', KEYS[2], unpack(ARGV))
return 1`

// listKeys are where a list is kept.
func listKeys(list string) []string {
	return []string{"ag:{index:" + list + "}z", "ag:{index:" + list + "}h"}
}

// Note implements [limiter.Noter]: one script a list, in one message.
func (s *Store) Note(ctx context.Context, notes []limiter.Note) error {
	args := map[string][]any{}
	var lists []string
	for _, n := range notes {
		if args[n.List] == nil {
			lists = append(lists, n.List)
			args[n.List] = []any{s.instant(n.At), limiter.MaxNotes}
		}
		args[n.List] = append(args[n.List], n.Key, n.Label, n.Until.UnixMicro())
	}
	if len(lists) == 0 {
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	pipe := s.client.Pipeline()
	for _, list := range lists {
		pipe.Eval(ctx, noteScript, listKeys(list), args[list]...)
	}
	return s.exec(ctx, pipe)
}

// Noted implements [limiter.Noter]. ctx alone bounds it, not Config.Timeout: nobody
// who logs in waits for it.
func (s *Store) Noted(ctx context.Context, lists []string) ([]limiter.Note, error) {
	if len(lists) == 0 {
		return nil, ctx.Err()
	}
	pipe := s.client.Pipeline()
	replies := make([]*redis.Cmd, len(lists))
	for i, list := range lists {
		replies[i] = pipe.Eval(ctx, notedScript, listKeys(list), s.instant(time.Time{}))
	}
	if err := s.exec(ctx, pipe); err != nil {
		return nil, err
	}
	var all []limiter.Note
	for i, reply := range replies {
		flat, err := reply.StringSlice()
		if err != nil || len(flat)%3 != 0 {
			return nil, fmt.Errorf("redisstore: a list was answered by %d values: %w", len(flat), err)
		}
		for ; len(flat) > 0; flat = flat[3:] {
			until, err := strconv.ParseFloat(flat[1], 64)
			if err != nil {
				return nil, fmt.Errorf("redisstore: a note ends at %q", flat[1])
			}
			all = append(all, limiter.Note{List: lists[i], Key: flat[0], Until: time.UnixMicro(int64(until)), Label: []byte(flat[2])})
		}
	}
	return all, nil
}

// Strike implements [limiter.Noter].
func (s *Store) Strike(ctx context.Context, list string, keys []string) error {
	if err := ctx.Err(); err != nil || len(keys) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	args := make([]any, len(keys))
	for i, key := range keys {
		args[i] = key
	}
	pipe := s.client.Pipeline()
	pipe.Eval(ctx, strikeScript, listKeys(list), args...)
	return s.exec(ctx, pipe)
}

func (s *Store) exec(ctx context.Context, pipe redis.Pipeliner) error {
	if _, err := pipe.Exec(ctx); err != nil {
		s.notice(ctx, err)
		return fault(err)
	}
	return nil
}

// instant is at or, if that is zero, the time of a clock of tests, or "" for the
// server's.
func (s *Store) instant(at time.Time) string {
	if at.IsZero() {
		if s.now == nil {
			return ""
		}
		at = s.now()
	}
	return strconv.FormatInt(at.UnixMicro(), 10)
}
