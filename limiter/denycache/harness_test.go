package denycache_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
	"authguard/limiter/denycache"
)

var (
	ctx  = context.Background()
	five = limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}
)

func one(key string, limit limiter.Limit) limiter.Charge { return some(key, limit, 1) }

func some(key string, limit limiter.Limit, cost int64) limiter.Charge {
	return limiter.Charge{Key: key, Limit: limit, Ask: limiter.Ask{Cost: cost}}
}

// hub is a channel between the caches of one process, at once and in order.
type hub struct {
	mu        sync.Mutex
	listeners map[*listener]bool
}

type listener struct {
	released func(string)
	alive    func(time.Duration)
	cut      chan struct{}
}

var errCut = errors.New("cut")

func (h *hub) Listen(ctx context.Context, released func(string), alive func(time.Duration)) error {
	l := &listener{released, alive, make(chan struct{})}
	h.mu.Lock()
	if h.listeners == nil {
		h.listeners = map[*listener]bool{}
	}
	h.listeners[l] = true
	alive(0)
	h.mu.Unlock()
	select {
	case <-ctx.Done():
	case <-l.cut:
		return errCut
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.listeners, l)
	return ctx.Err()
}

func (h *hub) release(keys ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		for _, k := range keys {
			l.released(k)
		}
	}
}

// beat is a sign of life.
func (h *hub) beat(age time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		l.alive(age)
	}
}

// cut breaks the channel of all who listen.
func (h *hub) cut() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.listeners {
		close(l.cut)
		delete(h.listeners, l)
	}
}

func (h *hub) listening() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.listeners)
}

// shared is a store that tells its hub what it sets free, as redisstore does, and
// counts what it is asked.
type shared struct {
	limiter.Store
	hub   *hub
	takes atomic.Int64
	hook  func() // before the answer to a Take arrives

	freeing func(free func() error) error // goes around what sets keys free, and tells nobody
}

func (s *shared) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	s.takes.Add(1)
	ok, err := s.Store.Take(ctx, charges)
	if s.hook != nil {
		s.hook()
	}
	return ok, err
}

func (s *shared) Refund(ctx context.Context, charges []limiter.Charge) error {
	if s.freeing != nil {
		return s.freeing(func() error { return s.Store.Refund(ctx, charges) })
	}
	var free []string
	for _, c := range charges {
		if !c.Taken {
			continue
		}
		look := []limiter.Charge{one(c.Key, c.Limit)}
		look[0].Member = c.Member
		if s.Store.Peek(context.WithoutCancel(ctx), look) == nil && !look[0].Decision.Allowed {
			free = append(free, c.Key)
		}
	}
	err := s.Store.Refund(ctx, charges)
	s.hub.release(free...)
	return err
}

func (s *shared) Forget(ctx context.Context, keys []string) error {
	if s.freeing != nil {
		return s.freeing(func() error { return s.Store.Forget(ctx, keys) })
	}
	err := s.Store.Forget(ctx, keys)
	s.hub.release(keys...)
	return err
}

// open makes a cache that listens to the hub.
func open(t testing.TB, c denycache.Config) *denycache.Store {
	t.Helper()
	s, err := denycache.New(c)
	require.NoError(t, err)
	running, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		s.Run(running)
		close(done)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	require.Eventually(t, func() bool { return s.Stats().Live }, time.Minute, time.Millisecond)
	return s
}
