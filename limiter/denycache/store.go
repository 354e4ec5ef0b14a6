package denycache

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"authguard/limiter"
)

// Config of a Store.
type Config struct {
	// Store is what is shared with other processes.
	Store limiter.Store

	// Channel tells of keys that the store denied and that became free, in any
	// process that shares it.
	Channel Channel

	// Settle is for how long a charge may be refunded; 0 means 10 s, as long as
	// package guard settles an attempt. A key must have been denied for so long
	// before its denials are answered here. A refund that comes later is told by
	// the channel only, which takes its time.
	Settle time.Duration

	// MaxKeys bounds the keys that are remembered, at about 200 bytes each; 0
	// means 65,536, the least is 64.
	MaxKeys int

	// Broken is told why the channel broke, each time that it does; nil tells
	// nobody. A user without the right to publish, for instance, keeps it broken.
	Broken func(error)

	// Now is the clock; nil means the process's, which never steps back.
	Now func() time.Time
}

const (
	defaultSettle  = 10 * time.Second
	defaultMaxKeys = 65_536
)

// Store implements [limiter.Store] by another one. Make it with [New], and have
// [Store.Run] run.
type Store struct {
	store    limiter.Store
	channel  Channel
	settle   time.Duration
	maxKeys  int
	broken   func(error)
	now      func() int64 // nanoseconds since New
	silentAt atomic.Int64 // by now: when the channel has been silent for too long
	seeds    [2]maphash.Seed
	shards   [shards]shard
}

var _ limiter.Store = (*Store)(nil)

// New checks c and makes a Store.
func New(c Config) (*Store, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("denycache: Config.Store is nil")
	case c.Channel == nil:
		return nil, errors.New("denycache: Config.Channel is nil: nobody would tell what other processes set free")
	case c.Settle < 0:
		return nil, fmt.Errorf("denycache: Config.Settle is %v, want at least 0", c.Settle)
	case c.MaxKeys != 0 && c.MaxKeys < shards:
		return nil, fmt.Errorf("denycache: Config.MaxKeys is %d, want at least %d", c.MaxKeys, shards)
	}
	if c.Settle == 0 {
		c.Settle = defaultSettle
	}
	if c.MaxKeys == 0 {
		c.MaxKeys = defaultMaxKeys
	}
	start := time.Now()
	s := &Store{
		store:   c.Store,
		channel: c.Channel,
		settle:  c.Settle,
		maxKeys: c.MaxKeys,
		broken:  c.Broken,
		now:     func() int64 { return int64(time.Since(start)) },
		seeds:   [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
	}
	if c.Now != nil {
		begin := c.Now()
		s.now = func() int64 { return int64(c.Now().Sub(begin)) }
	}
	s.silentAt.Store(never)
	for i := range s.shards {
		s.shards[i].records = map[hash]*record{}
	}
	return s, nil
}

// Unwrap is Config.Store, for abilities that are not of every store.
func (s *Store) Unwrap() limiter.Store { return s.store }

// Take implements [limiter.Store]. It asks the store if no voting charge is known
// to be denied.
func (s *Store) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	for i := range charges {
		charges[i].Taken = false
	}
	if err := limiter.CheckBatch(charges); err != nil {
		return false, err
	}
	if err := ctx.Err(); err != nil {
		return false, err
	}
	sent := s.now()
	if s.live(sent) && s.denies(charges, sent) {
		return false, nil
	}
	var buf [inline]uint64
	drops := buf[:0]
	for i := range charges {
		drops = append(drops, s.drops(charges[i].Key))
	}
	ok, err := s.store.Take(ctx, charges)
	if err == nil {
		s.learn(charges, sent, drops)
	}
	return ok, err
}

// inline is the length of batches that need no memory of their own.
const inline = 12

// rememberable reports that c's denial says all about its key: every ask costs at
// least as much, and no member would be free.
func rememberable(c *limiter.Charge) bool {
	return c.Cost == 1 && c.Member == "" && c.Advisory == 0
}

// denies answers charges if one of them is known to be denied. A larger cost may be
// an error, which only the store finds.
func (s *Store) denies(charges []limiter.Charge, now int64) (denied bool) {
	for i := range charges {
		if charges[i].Cost != 1 {
			return false
		}
	}
	at := int64(0)
	for i := range charges {
		c := &charges[i]
		if rememberable(c) && s.recall(c, now, &c.Decision) {
			denied, at = true, max(at, c.Decision.At)
		} else {
			c.Decision = limiter.Decision{Allowed: true}
		}
	}
	for i := range charges { // all that a batch is told belongs to one instant
		charges[i].Decision.At = at
	}
	return denied
}

// learn takes down what the store has said of charges. The wait that a batch is
// told is its longest: if that is of a charge which cannot be remembered, a denial
// of the others here would tell less.
func (s *Store) learn(charges []limiter.Charge, sent int64, drops []uint64) {
	var longest, others time.Duration // of those that can be remembered, and of those that cannot
	denied := false
	for i := range charges {
		c := &charges[i]
		switch {
		case c.Advisory != 0 || c.Decision.Allowed:
		case rememberable(c):
			denied = true
			longest = max(longest, c.Decision.RetryAfter)
		case c.Decision.Locked:
			others = limiter.MaxWindow
		default:
			others = max(others, c.Decision.RetryAfter)
		}
	}
	received := int64(0)
	if denied {
		received = s.now()
	}
	for i := range charges {
		c := &charges[i]
		switch {
		case c.Taken, rememberable(c) && (c.Decision.Allowed || others > longest):
			s.admits(c)
		case rememberable(c):
			s.note(c, sent, received, drops[i])
		}
	}
}

// Peek implements [limiter.Store]. It always asks the store.
func (s *Store) Peek(ctx context.Context, charges []limiter.Charge) error {
	return s.store.Peek(ctx, charges)
}

// Refund implements [limiter.Store].
func (s *Store) Refund(ctx context.Context, charges []limiter.Charge) error {
	var buf [inline]hash
	keys := buf[:0]
	for i := range charges {
		if charges[i].Taken {
			keys = append(keys, s.hash(charges[i].Key))
		}
	}
	defer s.dropAround(keys)()
	return s.store.Refund(ctx, charges)
}

// Forget implements [limiter.Store].
func (s *Store) Forget(ctx context.Context, keys []string) error {
	hashes := make([]hash, len(keys))
	for i, key := range keys {
		hashes[i] = s.hash(key)
	}
	defer s.dropAround(hashes)()
	return s.store.Forget(ctx, keys)
}

// dropAround drops keys now, so that the store is asked about them, and once more
// when the store has set them free, so that no answer from before is left.
func (s *Store) dropAround(keys []hash) (after func()) {
	drop := func() {
		for _, h := range keys {
			s.drop(h)
		}
	}
	drop()
	return drop
}

// Stats are totals of a Store.
type Stats struct {
	Live  bool   // the channel gives signs of life
	Keys  int    // remembered now, some of them past
	Local uint64 // charges that were denied here
}

// Stats adds up what it is about, bit by bit.
func (s *Store) Stats() Stats {
	t := Stats{Live: s.live(s.now())}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		t.Keys += len(sh.records)
		t.Local += sh.local
		sh.mu.Unlock()
	}
	return t
}
