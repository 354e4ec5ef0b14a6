package memcachestore

import (
	"context"
	"errors"

	"github.com/bradfitz/gomemcache/memcache"
)

const (
	markKey  = "ag:mark"
	markLife = 30 * 24 * 60 * 60 // seconds, the longest that is no date
)

// Mark leaves a text for the next process that shares the servers, and returns the
// one that was left last, "" if there is none. Applications leave a fingerprint of
// the secret that keys their names (guard.Fingerprint) when they start: another one
// belongs to processes whose counts are apart from theirs. ctx alone bounds it. Of
// two that start at the same moment one may not see the other.
func (s *Store) Mark(ctx context.Context, text string) (last string, err error) {
	err = s.pool.repeatable(ctx, func(m *memcache.Client) error {
		item, err := m.Get(markKey)
		if err == nil {
			last = string(item.Value)
		} else if !errors.Is(err, memcache.ErrCacheMiss) {
			return err
		}
		return m.Set(&memcache.Item{Key: markKey, Value: []byte(text), Expiration: markLife})
	})
	return last, err
}
