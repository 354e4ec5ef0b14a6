package memcachestore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"authguard/limiter"
)

// Config of a Store.
type Config struct {
	// Addrs are the servers: host:port, or the absolute path of a Unix socket. Keys are
	// spread over them, so all processes must have the same in the same order.
	Addrs []string

	// Dial connects to a server; nil means plainly. For TLS give the DialContext
	// of a tls.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	// Timeout bounds every call, connecting included; 0 means 50 ms. A context's
	// deadline cuts a call at once, its cancellation after the exchange under way.
	Timeout time.Duration

	// Now is a clock to decide by instead of the time of day, for tests. Keys
	// expire by the server's clock, and then live an hour longer.
	Now func() time.Time
}

const (
	defaultTimeout = 50 * time.Millisecond

	// apart is how much a clock of tests may be behind that of the server.
	apart = time.Hour
)

// Store implements [limiter.Store] on Memcached. Make it with [New].
type Store struct {
	pool    *pool
	turns   *turns
	timeout time.Duration
	now     func() time.Time
	slack   time.Duration // added to the life of a key
}

var _ limiter.Store = (*Store)(nil)

// New checks c and makes a Store. It asks the servers nothing.
func New(c Config) (*Store, error) {
	servers, err := newServers(c.Addrs)
	if err != nil {
		return nil, err
	}
	if c.Timeout < 0 {
		return nil, fmt.Errorf("memcachestore: Config.Timeout is %v, want at least 0", c.Timeout)
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	if c.Dial == nil {
		c.Dial = new(net.Dialer).DialContext
	}
	s := &Store{
		pool:    newPool(func() *session { return newSession(servers, c.Dial) }),
		turns:   newTurns(),
		timeout: c.Timeout,
		now:     time.Now,
	}
	if c.Now != nil {
		s.now, s.slack = c.Now, apart
	}
	return s, nil
}

// Close closes the connections that are idle. A Store can be used afterwards.
func (s *Store) Close() { s.pool.close() }

// Take implements [limiter.Store].
func (s *Store) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	for i := range charges {
		charges[i].Taken = false
	}
	if err := limiter.CheckBatch(charges); err != nil {
		return false, err
	}
	tell := s.pool.watch()
	c := s.begin(ctx)
	defer c.end()
	b := s.batch(charges)
	ok, err := b.take(c)
	if !ok {
		_ = b.giveBack(c.back, all) // what cannot be given back stays charged
		for i := range charges {
			b.asThingsAre(i)
		}
	}
	return ok, tell(err)
}

// Peek implements [limiter.Store].
func (s *Store) Peek(ctx context.Context, charges []limiter.Charge) error {
	if err := limiter.CheckBatch(charges); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	b := s.batch(charges)
	if err := b.read(ctx, b.those(all)...); err != nil {
		return err
	}
	now := s.now().UnixMicro()
	for i := range charges {
		if err := b.decide(i, now); err != nil {
			return err
		}
		b.asThingsAre(i)
	}
	return nil
}

// Refund implements [limiter.Store].
func (s *Store) Refund(ctx context.Context, charges []limiter.Charge) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.batch(charges).giveBack(ctx, all)
}

// Forget implements [limiter.Store].
func (s *Store) Forget(ctx context.Context, keys []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for _, key := range keys {
		err := s.pool.repeatable(ctx, func(m *memcache.Client) error { return m.Delete(legal(key)) })
		if err != nil && !errors.Is(err, memcache.ErrCacheMiss) {
			return err
		}
	}
	return nil
}

// fetch reads keys, in one round trip to each server. Keys that are missing have
// no item.
func (s *Store) fetch(ctx context.Context, keys []string) (map[string]*memcache.Item, error) {
	var items map[string]*memcache.Item
	if len(keys) == 0 {
		return items, ctx.Err()
	}
	err := s.pool.repeatable(ctx, func(m *memcache.Client) (err error) {
		items, err = m.GetMulti(keys)
		return err
	})
	return items, err
}

// write stores item in the place of what was held, and does so at most once.
// A conflict says that it was not stored.
func (s *Store) write(ctx context.Context, held *entry, item *memcache.Item) error {
	return s.pool.do(ctx, func(m *memcache.Client) error {
		if held.item == nil {
			return m.Add(item)
		}
		return m.CompareAndSwap(item)
	})
}
