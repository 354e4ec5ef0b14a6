package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	markKey  = "ag:mark"
	markLife = 31 * 24 * time.Hour // as long as the longest window
)

// Mark leaves a text for the next process that shares the server, and returns the
// one that was left last, "" if there is none. Applications leave a fingerprint of
// the secret that keys their names (guard.Fingerprint) when they start: another one
// belongs to processes whose counts are apart from theirs. ctx alone bounds it, not
// Config.Timeout: nobody waits for it yet.
func (s *Store) Mark(ctx context.Context, text string) (last string, err error) {
	last, err = s.client.SetArgs(ctx, markKey, text, redis.SetArgs{TTL: markLife, Get: true}).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fault(err)
	}
	return last, nil
}

// Marked returns the text that was left last, "" if there is none, and leaves none: for
// tools that do not count and want to know whose server it is.
func (s *Store) Marked(ctx context.Context) (last string, err error) {
	last, err = s.client.Get(ctx, markKey).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return "", fault(err)
	}
	return last, nil
}
