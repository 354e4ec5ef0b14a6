package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"authguard/limiter"
)

// Config of a Store.
type Config struct {
	// Client of one server, or of a primary found by Sentinel
	// (redis.NewFailoverClient). It must obey contexts: ContextTimeoutEnabled.
	Client *redis.Client

	// Timeout bounds every call, connecting included; 0 means 50 ms.
	Timeout time.Duration

	// Now is a clock to decide by instead of the server's, for tests.
	Now func() time.Time
}

const defaultTimeout = 50 * time.Millisecond

// Store implements [limiter.Store] on Redis. Make it with [New].
type Store struct {
	client  *redis.Client
	timeout time.Duration
	now     func() time.Time
	scripts scripts
	calls   sync.Pool // of *call
	line    line
}

var _ limiter.Store = (*Store)(nil)

// New checks c and makes a Store. It asks the server nothing.
func New(c Config) (*Store, error) {
	if c.Client == nil {
		return nil, errors.New("redisstore: Config.Client is nil")
	}
	if c.Timeout < 0 {
		return nil, fmt.Errorf("redisstore: Config.Timeout is %v, want at least 0", c.Timeout)
	}
	if !c.Client.Options().ContextTimeoutEnabled {
		return nil, errors.New("redisstore: the client's ContextTimeoutEnabled is false: a call would outlive its deadline by seconds")
	}
	if c.Timeout == 0 {
		c.Timeout = defaultTimeout
	}
	s := &Store{
		client:  c.Client,
		timeout: c.Timeout,
		now:     c.Now,
		scripts: scripts{laws: map[string]int{}, made: map[uint64]script{}, known: map[limiter.Limit]*compiled{}},
	}
	s.calls.New = func() any { return new(call) }
	// The laws of the package in one order, so that all processes have the same
	// scripts, of which the server keeps every one that it has seen.
	for _, l := range []limiter.Limit{
		limiter.SlidingWindow{}, limiter.SlidingWindowCounter{}, limiter.TokenBucket{}, limiter.FixedWindow{}, limiter.Backoff{}, limiter.Distinct{},
	} {
		if _, err := s.scripts.compile(l); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Take implements [limiter.Store].
func (s *Store) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	for i := range charges {
		charges[i].Taken = false
	}
	if err := s.ask(ctx, "take", charges); err != nil {
		for i := range charges {
			charges[i].Taken = false
		}
		return false, err
	}
	for i := range charges {
		if charges[i].Advisory == 0 && !charges[i].Taken {
			return false, nil
		}
	}
	return true, nil
}

// Peek implements [limiter.Store].
func (s *Store) Peek(ctx context.Context, charges []limiter.Charge) error {
	return s.ask(ctx, "peek", charges)
}

// Refund implements [limiter.Store].
func (s *Store) Refund(ctx context.Context, charges []limiter.Charge) error {
	c := s.begin()
	defer s.end(c)
	for i := range charges {
		if charge := &charges[i]; charge.Taken {
			charge.Taken = false // whatever comes of it: a refund is made once
			if charge.Cost < 1 || charge.Cost > limiter.MaxLimit {
				return &limiter.ChargeError{Index: i, Err: fmt.Errorf("redisstore: Cost of a refund is %d, want 1 to %d", charge.Cost, limiter.MaxLimit)}
			}
			if err := c.add(s, charge, i, 0); err != nil {
				return err
			}
		}
	}
	if len(c.keys) == 0 {
		return ctx.Err()
	}
	reply, err := s.call(ctx, c, "refund")
	if err != nil {
		return err
	}
	for i, flag := range []byte(reply) {
		if flag&isAlien != 0 {
			return &limiter.ChargeError{Index: c.index[i], Err: limiter.ErrState}
		}
	}
	return nil
}

// Forget implements [limiter.Store].
func (s *Store) Forget(ctx context.Context, keys []string) error {
	if err := ctx.Err(); err != nil || len(keys) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.client.Eval(ctx, forgetScript, keys).Err(); err != nil {
		return fault(err)
	}
	return nil
}

// ask sends a batch to be decided and reads the answer.
func (s *Store) ask(ctx context.Context, mode string, charges []limiter.Charge) error {
	if err := limiter.CheckBatch(charges); err != nil {
		return err
	}
	c := s.begin()
	defer s.end(c)
	for i := range charges {
		charge := &charges[i]
		charge.Decision.At = 0
		flags, err := c.check(charge)
		if err == nil {
			err = c.add(s, charge, i, flags)
		}
		if err != nil {
			return &limiter.ChargeError{Index: i, Err: err}
		}
	}
	reply, err := s.call(ctx, c, mode)
	if err != nil {
		return err
	}
	if err := readReply(reply, charges, c.limits); err != nil {
		return err
	}
	for i := range charges {
		if c.args[i][1]&barred != 0 {
			charges[i].Decision = limiter.Decision{}
		}
	}
	return nil
}

// call is the memory of one call.
type call struct {
	keys   []string
	args   [][]byte
	index  []int   // of each in the caller's slice
	limits []int64 // of each: Decision.Limit
	laws   uint64  // the set of them
	state  []byte  // what a law would store, of no use here
	lost   bool    // given up while it was under way: its memory may still be read
}

func (s *Store) begin() *call { return s.calls.Get().(*call) }

func (s *Store) end(c *call) {
	if c.lost {
		return
	}
	clear(c.keys)
	*c = call{keys: c.keys[:0], args: c.args[:0], index: c.index[:0], limits: c.limits[:0], state: c.state[:0]}
	s.calls.Put(c)
}

// check asks the law in Go whether the charge makes sense: its numbers, its
// cost, its member. An advisory cost that is too high is barred, not an error.
func (c *call) check(charge *limiter.Charge) (flags byte, err error) {
	if charge.Advisory < 0 || charge.Advisory > maxGroups {
		return 0, fmt.Errorf("redisstore: Advisory is %d, want 0 to %d", charge.Advisory, maxGroups)
	}
	flags = byte(charge.Advisory)
	d, state, err := charge.Limit.Take(c.state[:0], nil, 0, charge.Ask)
	c.state = state[:0]
	if charge.Advisory > 0 && errors.Is(err, limiter.ErrCostTooHigh) {
		flags, err = flags|barred, nil
	}
	c.limits = append(c.limits, d.Limit)
	return flags, err
}

func (c *call) add(s *Store, charge *limiter.Charge, i int, flags byte) error {
	l, err := s.scripts.compile(charge.Limit)
	if err != nil {
		return err
	}
	c.laws |= 1 << l.law
	c.keys = append(c.keys, charge.Key)
	c.index = append(c.index, i)
	n := len(c.args)
	if n < cap(c.args) {
		c.args = c.args[:n+1]
	} else {
		c.args = append(c.args, nil)
	}
	c.args[n] = appendCharge(c.args[n][:0], l.law, charge, flags, l.numbers)
	return nil
}

func appendNumber(dst []byte, n int64) []byte {
	return binary.BigEndian.AppendUint64(dst, uint64(n))
}

func micros(b []byte) time.Duration {
	return time.Duration(binary.BigEndian.Uint64(b)) * time.Microsecond
}
