package memstore

import (
	"context"
	"errors"
	"math/bits"
	"time"

	"authguard/limiter"
)

// Config of a Store. Its zero value is good.
type Config struct {
	// MaxBytes bounds the memory of keys and states. 0 means 128 MiB, which
	// holds 1.4 million keys, of them 1,000 with the largest states (a window or
	// a Distinct of a thousand). The least is 128 KiB.
	MaxBytes int64

	// Now is the clock; nil means the process's clock, which never steps back.
	Now func() time.Time
}

// ErrFull reports that there was no room for a new key, because every key that
// is stored denies at present and must be kept, or none has so large a state.
var ErrFull = errors.New("memstore: full of keys that are denying")

// Store implements [limiter.Store] in memory. Make it with [New].
type Store struct {
	shards []shard
	shift  uint // of a hash, to its shard
	key    hashKey
	now    func() int64
	notes  notes
}

var _ limiter.Store = (*Store)(nil)

const (
	defaultBytes  = 128 << 20
	minShardBytes = 128 << 10 // an eighth of it holds the largest state
	maxShards     = 256
)

// New makes an empty store.
func New(c Config) *Store {
	if c.MaxBytes <= 0 {
		c.MaxBytes = defaultBytes
	}
	n := min(maxShards, max(1, c.MaxBytes/minShardBytes))
	n = 1 << (bits.Len64(uint64(n)) - 1)
	s := &Store{
		shards: make([]shard, n),
		shift:  uint(32 - bits.Len64(uint64(n-1))),
		key:    newHashKey(),
		now:    processClock(),
	}
	for i := range s.shards {
		s.shards[i].budget = int(max(minShardBytes, c.MaxBytes/n))
	}
	if c.Now != nil {
		s.now = func() int64 { return c.Now().UnixMicro() }
	}
	return s
}

// processClock counts from the time of day at its start with the monotonic
// clock, so that nothing ever steps back.
func processClock() func() int64 {
	start := time.Now()
	micros := start.UnixMicro()
	return func() int64 { return micros + int64(time.Since(start)/time.Microsecond) }
}

// Forget implements [limiter.Store].
func (s *Store) Forget(ctx context.Context, keys []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, key := range keys {
		h := s.hash(key)
		sh := &s.shards[s.shardOf(h)]
		sh.mu.Lock()
		if i, ok := sh.find(h); ok {
			sh.remove(i)
		}
		sh.mu.Unlock()
	}
	return nil
}

// Sweep drops all keys whose limits are whole again. Writes do it bit by bit;
// Sweep is for an application that goes idle and wants the memory back.
func (s *Store) Sweep() {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		sh.sweep(s.now(), 3*len(sh.slots)) // a round, its removals, and a round of the smaller table
		sh.mu.Unlock()
	}
}

// Stats are totals of a Store.
type Stats struct {
	Keys    int    // stored now, some of them whole again and not yet swept
	Bytes   int    // held for keys and states
	Evicted uint64 // keys that were dropped, while they still counted, to make room
	Full    uint64 // batches that failed with ErrFull
}

// Stats adds up the shards, one after the other.
func (s *Store) Stats() Stats {
	var t Stats
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		t.Keys += sh.used
		t.Bytes += sh.bytes()
		t.Evicted += sh.evicted
		t.Full += sh.full
		sh.mu.Unlock()
	}
	return t
}
