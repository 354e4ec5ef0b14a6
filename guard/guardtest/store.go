package guardtest

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"authguard/guard"
	"authguard/limiter"
)

// A Store admits everything, or refuses everything, and keeps a record of what it
// was asked. It is a [limiter.Store] for guard.Config.Store, so that the guard in
// front of it stays the real one, and a [guard.Observer] for guard.Config.Observer,
// which tells it how attempts ended. Make it with [Open]; its zero value answers
// with an error, on which a guard refuses. It is safe for any number of goroutines.
type Store struct {
	t testing.TB // nil unless made by Open

	mu       sync.Mutex
	refuse   bool
	attempts [][]limiter.Charge
	events   []guard.Event
	standing map[string]map[string]int64 // what is charged, by key and member
}

// Open is a Store that admits everything, for tests that log in more often than
// any limit admits. Outside of tests it panics: there it would be a door.
func Open(t testing.TB) *Store {
	if !testing.Testing() {
		panic("guardtest: Open outside of a test")
	}
	t.Helper()
	return &Store{t: t, standing: map[string]map[string]int64{}}
}

// Guard is a real guard over s with policies, such as policies.Default(), for an
// application that takes one. An application that makes its own is given s.
func (s *Store) Guard(policies ...guard.Policy) *guard.Guard {
	s.t.Helper()
	secret := make([]byte, 32)
	rand.Read(secret)
	g, err := guard.New(guard.Config{Store: s, Observer: s, Secret: secret, Policies: policies})
	if err != nil {
		s.t.Fatalf("guardtest: %v", err)
	}
	return g
}

// Refuse makes every rule deny each attempt, with a wait of one second, or admit
// again.
func (s *Store) Refuse(refuse bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

// Attempts are the charges of each attempt that was checked, in order, whether it
// was admitted or refused. Keys are hashes. What stands charged for an account or
// an address in the end, [guard.Guard.Inspect] tells: Status.Used.
func (s *Store) Attempts() [][]limiter.Charge {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.attempts)
}

// Events are what the guard decided and how attempts ended (Admitted, Failed,
// Succeeded, …), in order. There are none unless s is the guard's Observer.
func (s *Store) Events() []guard.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}

// Observe implements [guard.Observer].
func (s *Store) Observe(_ context.Context, e guard.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events = append(s.events, e)
}

var errNotOpen = errors.New("guardtest: this Store was not made by Open")

// check reports why s cannot answer.
func (s *Store) check(ctx context.Context) error {
	if s == nil || s.t == nil {
		return errNotOpen
	}
	return ctx.Err()
}

// Take implements [limiter.Store].
func (s *Store) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	for i := range charges {
		charges[i].Taken = false
	}
	if err := errors.Join(s.check(ctx), limiter.CheckBatch(charges)); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	admitted := true
	for i := range charges {
		if err := s.decide(&charges[i]); err != nil {
			return false, &limiter.ChargeError{Index: i, Err: err}
		}
		admitted = admitted && (charges[i].Decision.Allowed || charges[i].Advisory > 0)
	}
	for i := range charges {
		c := &charges[i]
		if c.Taken = admitted && c.Decision.Allowed; c.Taken {
			if s.standing[c.Key] == nil {
				s.standing[c.Key] = map[string]int64{}
			}
			s.standing[c.Key][c.Member] += c.Cost
		}
	}
	s.attempts = append(s.attempts, slices.Clone(charges))
	return admitted, nil
}

// Peek implements [limiter.Store].
func (s *Store) Peek(ctx context.Context, charges []limiter.Charge) error {
	if err := errors.Join(s.check(ctx), limiter.CheckBatch(charges)); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range charges {
		c := &charges[i]
		if err := s.decide(c); err != nil {
			return &limiter.ChargeError{Index: i, Err: err}
		}
		c.Decision.Remaining = c.Decision.Limit - s.used(c.Key)
	}
	return nil
}

// Refund implements [limiter.Store].
func (s *Store) Refund(ctx context.Context, charges []limiter.Charge) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range charges {
		c := &charges[i]
		if !c.Taken {
			continue
		}
		c.Taken = false
		members := s.standing[c.Key]
		if left := members[c.Member] - c.Cost; left > 0 {
			members[c.Member] = left
		} else {
			delete(members, c.Member) // also what was forgotten meanwhile
		}
	}
	return nil
}

// Forget implements [limiter.Store].
func (s *Store) Forget(ctx context.Context, keys []string) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, key := range keys {
		delete(s.standing, key)
	}
	return nil
}

// decide answers as the law does for a key that it has never seen, or denies. What
// a law never admits, a cost above its limit, is not admitted here either.
func (s *Store) decide(c *limiter.Charge) error {
	now := time.Now().UnixMicro()
	if s.refuse {
		c.Decision = limiter.Decision{RetryAfter: time.Second, ResetAfter: time.Second, At: now}
		return nil
	}
	d, _, err := limiter.Decide(c.Limit, nil, nil, now, c.Ask)
	if errors.Is(err, limiter.ErrCostTooHigh) && c.Advisory > 0 {
		d, err = limiter.Decision{At: now}, nil
	}
	c.Decision = d
	return err
}

// used is how much of a key's limit stands charged: units, or members.
func (s *Store) used(key string) (n int64) {
	for member, cost := range s.standing[key] {
		if member != "" {
			cost = 1
		}
		n += cost
	}
	return n
}
