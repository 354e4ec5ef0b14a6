package denycache_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
	"authguard/limiter/denycache"
	"authguard/limiter/limitertest"
	"authguard/limiter/memstore"
)

// The contract of a store, told to one that answers from its memory whenever it
// can: the channel is alive and denials are settled at once. What it leaves unasked
// the test asks, so that the suite compares every decision.
func TestConformance(t *testing.T) {
	var local atomic.Uint64
	limitertest.Store(t, func(t *testing.T, now func() time.Time) limiter.Store {
		s := &complete{hub: new(hub), clock: now}
		mem := &shared{Store: memstore.New(memstore.Config{Now: s.now}), hub: s.hub}
		s.tick()
		s.Store = open(t, denycache.Config{Store: mem, Channel: s.hub, Settle: time.Nanosecond, Now: s.now})
		t.Cleanup(func() { local.Add(s.Store.Stats().Local) })
		return s
	})
	require.Greater(t, local.Load(), uint64(1000), "denials that were answered locally")
}

// complete has one reading of the clock a call, for the cache and the store, and
// completes the decisions.
type complete struct {
	*denycache.Store
	hub   *hub
	clock func() time.Time
	mu    sync.Mutex
	read  atomic.Pointer[time.Time]
}

func (s *complete) now() time.Time { return *s.read.Load() }

func (s *complete) tick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.clock()
	s.read.Store(&t)
	s.hub.beat(0)
}

func (s *complete) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	s.tick()
	ok, err := s.Store.Take(ctx, charges)
	if ok || err != nil {
		return ok, err
	}
	return false, ask(ctx, s.Store, charges)
}

// ask has the store decide what it was not asked.
func ask(ctx context.Context, store limiter.Store, charges []limiter.Charge) error {
	for i := range charges {
		if charges[i].Decision.NotAsked() {
			if err := store.Peek(ctx, charges[i:i+1]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *complete) Peek(ctx context.Context, charges []limiter.Charge) error {
	s.tick()
	return s.Store.Peek(ctx, charges)
}

func (s *complete) Refund(ctx context.Context, charges []limiter.Charge) error {
	s.tick()
	return s.Store.Refund(ctx, charges)
}

func (s *complete) Forget(ctx context.Context, keys []string) error {
	s.tick()
	return s.Store.Forget(ctx, keys)
}
