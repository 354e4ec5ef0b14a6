package breaker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sony/gobreaker/v2"

	"authguard/limiter"
)

// Config of a Store.
type Config struct {
	// Store is what may be down.
	Store limiter.Store

	// Faults in a row, over a quarter of a second at least, open the breaker; 0
	// means 5. A key's own error, a mistake of the caller, a crowd and a caller that
	// has gone are no faults of the store.
	Faults int

	// Pause is how long it stays open before one call tries again; 0 means 1 s.
	Pause time.Duration

	// InFlight bounds the calls under way; 0 means 256.
	InFlight int
}

// Errors of calls that did not reach the store.
var (
	// ErrOpen reports that the store was down a moment ago.
	ErrOpen = errors.New("breaker: the store is down")

	// ErrBusy reports that too many calls are under way. It is a
	// [limiter.ErrOverloaded], not an outage.
	ErrBusy = fmt.Errorf("breaker: %w", limiter.ErrOverloaded)
)

const (
	// busyWait is how long a call waits for a place.
	busyWait = 50 * time.Millisecond

	// faultSpan is for how long nothing but faults must come back until the
	// breaker opens: many calls can fail by one delayed packet.
	faultSpan = 250 * time.Millisecond
)

// Store implements [limiter.Store] by another one. Make it with [New].
type Store struct {
	store  limiter.Store
	cb     *gobreaker.CircuitBreaker[bool]
	places chan struct{}
	start  time.Time
	since  atomic.Int64 // of the first fault in a row, from start and at least 1; 0: none
}

var _ limiter.Store = (*Store)(nil)

// New checks c and makes a Store.
func New(c Config) (*Store, error) {
	switch {
	case c.Store == nil:
		return nil, errors.New("breaker: Config.Store is nil")
	case c.Faults < 0:
		return nil, fmt.Errorf("breaker: Config.Faults is %d, want at least 0", c.Faults)
	case c.Pause < 0:
		return nil, fmt.Errorf("breaker: Config.Pause is %v, want at least 0", c.Pause)
	case c.InFlight < 0:
		return nil, fmt.Errorf("breaker: Config.InFlight is %d, want at least 0", c.InFlight)
	}
	if c.Faults == 0 {
		c.Faults = 5
	}
	if c.Pause == 0 {
		c.Pause = time.Second
	}
	if c.InFlight == 0 {
		c.InFlight = 256
	}
	s := &Store{store: c.Store, places: make(chan struct{}, c.InFlight), start: time.Now()}
	s.cb = gobreaker.NewCircuitBreaker[bool](gobreaker.Settings{
		Timeout: c.Pause,
		ReadyToTrip: func(n gobreaker.Counts) bool {
			since := s.since.Load() // 0: one has succeeded that is not counted yet
			return n.ConsecutiveFailures >= uint32(c.Faults) && since != 0 && time.Since(s.start)-time.Duration(since) >= faultSpan
		},
		IsExcluded: func(err error) bool { return errors.As(err, new(notItsFault)) },
	})
	return s, nil
}

// Unwrap is the store that may be down, for abilities that are not of every store.
// Calls of those do not open the breaker and are not kept from the store by it.
func (s *Store) Unwrap() limiter.Store { return s.store }

// notItsFault wraps an error that says nothing of the store's health.
type notItsFault struct{ error }

func (e notItsFault) Unwrap() error { return e.error }

// call makes one call of the store, if it may be made.
func (s *Store) call(ctx context.Context, f func() (bool, error)) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := s.enter(ctx); err != nil {
		return false, err
	}
	defer func() { <-s.places }()
	ok, err := s.cb.Execute(func() (bool, error) {
		ok, err := f()
		switch {
		case err == nil:
			s.since.Store(0)
		case limiter.Gone(ctx), errors.As(err, new(*limiter.ChargeError)),
			errors.Is(err, limiter.ErrCostTooHigh), errors.Is(err, limiter.ErrOverloaded):
			err = notItsFault{err}
		default:
			s.since.CompareAndSwap(0, max(1, int64(time.Since(s.start)))) // no step of the clock moves it
		}
		return ok, err
	})
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return false, ErrOpen
	}
	if wrapped := (notItsFault{}); errors.As(err, &wrapped) {
		err = wrapped.error
	}
	return ok, err
}

// enter waits for a place among the calls under way.
func (s *Store) enter(ctx context.Context) error {
	select {
	case s.places <- struct{}{}:
		return nil
	default:
	}
	timer := time.NewTimer(busyWait)
	defer timer.Stop()
	select {
	case s.places <- struct{}{}:
		return nil
	case <-timer.C:
		return ErrBusy
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Take implements [limiter.Store].
func (s *Store) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	for i := range charges {
		charges[i].Taken = false
	}
	if err := limiter.CheckBatch(charges); err != nil {
		return false, err
	}
	return s.call(ctx, func() (bool, error) { return s.store.Take(ctx, charges) })
}

// Peek implements [limiter.Store].
func (s *Store) Peek(ctx context.Context, charges []limiter.Charge) error {
	if err := limiter.CheckBatch(charges); err != nil {
		return err
	}
	_, err := s.call(ctx, func() (bool, error) { return true, s.store.Peek(ctx, charges) })
	return err
}

// Refund implements [limiter.Store]. What cannot be refunded now stays charged.
func (s *Store) Refund(ctx context.Context, charges []limiter.Charge) error {
	_, err := s.call(ctx, func() (bool, error) { return true, s.store.Refund(ctx, charges) })
	for i := range charges {
		charges[i].Taken = false // a refund is made once, also one that did not get through
	}
	return err
}

// Forget implements [limiter.Store].
func (s *Store) Forget(ctx context.Context, keys []string) error {
	_, err := s.call(ctx, func() (bool, error) { return true, s.store.Forget(ctx, keys) })
	return err
}
