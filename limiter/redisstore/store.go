package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"authguard/limiter"
)

// Config of a Store.
type Config struct {
	// Client is a *redis.Client, of one server or of a primary found by Sentinel
	// (redis.NewFailoverClient), or a *redis.ClusterClient. It must obey contexts
	// (ContextTimeoutEnabled) and not read from replicas.
	Client redis.UniversalClient

	// Timeout bounds every call, connecting included; 0 means 50 ms. On a cluster
	// what is given back after a denial may go on for as much again, without the
	// caller.
	Timeout time.Duration

	// Now is a clock to decide by instead of the server's, for tests.
	Now func() time.Time
}

const defaultTimeout = 50 * time.Millisecond

// Store implements [limiter.Store] on Redis. Make it with [New].
type Store struct {
	client  redis.UniversalClient
	single  *redis.Client        // or
	cluster *redis.ClusterClient // the other one is nil
	timeout time.Duration
	now     func() time.Time
	scripts scripts
	calls   sync.Pool // of *call
	line    line
}

var _ limiter.Store = (*Store)(nil)

// New checks c and makes a Store. It asks the server nothing.
func New(c Config) (*Store, error) {
	if c.Timeout < 0 {
		return nil, fmt.Errorf("redisstore: Config.Timeout is %v, want at least 0", c.Timeout)
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	s := &Store{
		client:  c.Client,
		timeout: c.Timeout,
		now:     c.Now,
		scripts: scripts{laws: map[string]int{}, made: map[uint64]script{}, known: map[limiter.Limit]*compiled{}},
		line:    line{queues: map[*redis.Client]*queue{}},
	}
	if err := s.use(c.Client); err != nil {
		return nil, err
	}
	s.calls.New = func() any { return new(call) }
	// The laws of the package in one order, so that all processes have the same
	// scripts, of which the server keeps every one that it has seen.
	for _, l := range []limiter.Limit{
		limiter.SlidingWindow{}, limiter.SlidingWindowCounter{}, limiter.TokenBucket{}, limiter.FixedWindow{}, limiter.Backoff{}, limiter.Distinct{}, limiter.Block{},
	} {
		if _, err := s.scripts.compile(l); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// use takes a client whose options are safe.
func (s *Store) use(client redis.UniversalClient) error {
	obeysContexts := false
	switch c := client.(type) {
	case *redis.Client:
		if c != nil {
			s.single, obeysContexts = c, c.Options().ContextTimeoutEnabled
		}
	case *redis.ClusterClient:
		if c != nil {
			o := c.Options()
			s.cluster, obeysContexts = c, o.ContextTimeoutEnabled
			switch { // the first two switch the third on
			case o.RouteByLatency:
				return errors.New("redisstore: the client's RouteByLatency is true: a replica must not decide")
			case o.RouteRandomly:
				return errors.New("redisstore: the client's RouteRandomly is true: a replica must not decide")
			case o.ReadOnly:
				return errors.New("redisstore: the client's ReadOnly is true: a replica must not decide")
			}
		}
	case nil:
	default:
		return fmt.Errorf("redisstore: Config.Client is a %T, want *redis.Client or *redis.ClusterClient", client)
	}
	if s.single == nil && s.cluster == nil {
		return errors.New("redisstore: Config.Client is nil")
	}
	if !obeysContexts {
		return errors.New("redisstore: the client's ContextTimeoutEnabled is false: a call would outlive its deadline by seconds")
	}
	return nil
}

// Take implements [limiter.Store].
func (s *Store) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	for i := range charges {
		charges[i].Taken = false
	}
	began := time.Now()
	parts, err := s.ask(ctx, take, charges)
	ok := err == nil
	for i := range charges {
		ok = ok && (charges[i].Advisory > 0 || charges[i].Taken)
	}
	if parts > 1 {
		s.takeBackWithin(ctx, s.timeout-time.Since(began), charges, ok, err == nil)
	}
	if err != nil {
		for i := range charges {
			charges[i].Taken = false
		}
	}
	return ok, err
}

// Peek implements [limiter.Store].
func (s *Store) Peek(ctx context.Context, charges []limiter.Charge) error {
	_, err := s.ask(ctx, peek, charges)
	return err
}

// ask has a batch decided, in so many parts, and reads the answers.
func (s *Store) ask(ctx context.Context, m mode, charges []limiter.Charge) (parts int, err error) {
	if err := limiter.CheckBatch(charges); err != nil {
		return 0, err
	}
	c := s.begin()
	defer s.end(c)
	for i := range charges {
		charges[i].Decision.At = 0
		if err := c.ask(s, m, &charges[i], i); err != nil {
			return 0, &limiter.ChargeError{Index: i, Err: err}
		}
	}
	err = s.run(ctx, c)
	if err == nil {
		err = c.read(charges)
	}
	return len(c.parts), err
}

// Refund implements [limiter.Store].
func (s *Store) Refund(ctx context.Context, charges []limiter.Charge) error {
	c := s.begin()
	defer s.end(c)
	for i := range charges {
		if charge := &charges[i]; charge.Taken {
			charge.Taken = false // whatever comes of it: a refund is made once
			if charge.Limit == nil {
				return &limiter.ChargeError{Index: i, Err: errors.New("redisstore: charge has no Limit")}
			}
			if charge.Cost < 1 || charge.Cost > limiter.MaxLimit {
				return &limiter.ChargeError{Index: i, Err: fmt.Errorf("redisstore: Cost of a refund is %d, want 1 to %d", charge.Cost, limiter.MaxLimit)}
			}
			if err := c.add(s, refund, charge, item{index: i}); err != nil {
				return err
			}
		}
	}
	if err := s.run(ctx, c); err != nil {
		return err
	}
	return c.read(charges)
}

// takeBackWithin has given back what cannot stand. It goes on without the caller,
// who waits for so long at most.
func (s *Store) takeBackWithin(ctx context.Context, wait time.Duration, charges []limiter.Charge, ok, answered bool) {
	var torn uint64 // set of advisory groups
	some := false
	for i := range charges {
		if !charges[i].Taken {
			torn |= 1 << charges[i].Advisory
		}
	}
	stands := func(c *limiter.Charge) bool { return ok && torn&(1<<c.Advisory) == 0 }
	for i := range charges {
		some = some || charges[i].Taken && !stands(&charges[i])
	}
	if !some {
		return
	}
	back := slices.Clone(charges)
	for i := range charges {
		charges[i].Taken = charges[i].Taken && stands(&charges[i])
		back[i].Taken = back[i].Taken && !charges[i].Taken
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.takeBack(context.WithoutCancel(ctx), back, answered)
	}()
	timer := time.NewTimer(max(0, wait))
	defer timer.Stop()
	select {
	case <-done:
		for i := range charges {
			charges[i].Decision = back[i].Decision
		}
	case <-timer.C:
	}
}

// takeBack gives back what is taken of charges, and tells how things are then. What
// it fails to give back stands until it ages out.
func (s *Store) takeBack(ctx context.Context, charges []limiter.Charge, look bool) {
	c := s.begin()
	defer s.end(c)
	for i := range charges {
		if charge := &charges[i]; charge.Taken {
			charge.Taken = false
			c.add(s, refund, charge, item{index: i})
			if look {
				c.ask(s, peek, charge, i)
			}
		}
	}
	if s.run(ctx, c) == nil {
		c.read(charges)
	}
}

// Forget implements [limiter.Store].
func (s *Store) Forget(ctx context.Context, keys []string) error {
	if err := ctx.Err(); err != nil || len(keys) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	pipe := s.client.Pipeline()
	for _, key := range keys {
		pipe.Eval(ctx, forgetScript, []string{key}) // one key each, which the client finds on a cluster
	}
	if _, err := pipe.Exec(ctx); err != nil {
		s.notice(ctx, err)
		return fault(err)
	}
	return nil
}
