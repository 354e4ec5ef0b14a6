package breaker_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
	"authguard/limiter/breaker"
	"authguard/limiter/limitertest"
	"authguard/limiter/memstore"
)

var ctx = context.Background()

// A closed breaker changes nothing.
func TestConformance(t *testing.T) {
	limitertest.Store(t, func(t *testing.T, now func() time.Time) limiter.Store {
		s, err := breaker.New(breaker.Config{Store: memstore.New(memstore.Config{Now: now}), InFlight: 2000})
		require.NoError(t, err)
		return s
	})
}

// faulty fails, or hangs until the context ends, as it is told.
type faulty struct {
	limiter.Store
	err   error
	hang  atomic.Bool
	calls atomic.Int64
}

func (f *faulty) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	f.calls.Add(1)
	if f.hang.Load() {
		<-ctx.Done()
		return false, ctx.Err()
	}
	if f.err != nil {
		return false, f.err
	}
	return f.Store.Take(ctx, charges)
}

func newFaulty(t *testing.T, c breaker.Config) (*faulty, *breaker.Store) {
	t.Helper()
	f := &faulty{Store: memstore.New(memstore.Config{})}
	c.Store = f
	s, err := breaker.New(c)
	require.NoError(t, err)
	return f, s
}

func one() []limiter.Charge {
	return []limiter.Charge{{Key: "k", Limit: limiter.SlidingWindow{Limit: 100, Window: time.Hour}, Ask: limiter.Ask{Cost: 1}}}
}

func TestAStoreThatIsDownIsAnsweredForAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFaulty(t, breaker.Config{})
		down := errors.New("connection refused")
		f.err = down
		for range 100 { // all by one delayed packet, perhaps
			_, err := s.Take(ctx, one())
			require.ErrorIs(t, err, down)
		}
		f.calls.Store(0)
		for range 5 {
			_, err := s.Take(ctx, one())
			require.ErrorIs(t, err, down)
			time.Sleep(60 * time.Millisecond)
		}
		_, err := s.Take(ctx, one())
		require.Error(t, err)
		require.EqualValues(t, 6, f.calls.Load())
		for range 100 {
			_, err := s.Take(ctx, one())
			require.ErrorIs(t, err, breaker.ErrOpen)
		}
		require.EqualValues(t, 6, f.calls.Load())
		time.Sleep(time.Second + time.Millisecond)
		_, err = s.Take(ctx, one()) // one tries
		require.ErrorIs(t, err, down)
		_, err = s.Take(ctx, one())
		require.ErrorIs(t, err, breaker.ErrOpen)
		require.EqualValues(t, 7, f.calls.Load())

		f.err = nil
		time.Sleep(time.Second + time.Millisecond)
		for range 10 {
			ok, err := s.Take(ctx, one())
			require.NoError(t, err)
			require.True(t, ok)
		}
	})
}

// Denials, mistakes, a key's own error, crowds and clients that go away open nothing.
func TestWhatIsNoFaultOpensNothing(t *testing.T) {
	synctest.Test(t, whatIsNoFault)
}

func whatIsNoFault(t *testing.T) {
	f, s := newFaulty(t, breaker.Config{Faults: 1})
	for range 200 { // half of them denied
		_, err := s.Take(ctx, one())
		require.NoError(t, err)
	}
	dear := one()
	dear[0].Cost = 101
	_, err := s.Take(ctx, dear)
	require.ErrorIs(t, err, limiter.ErrCostTooHigh)
	_, err = s.Take(ctx, nil)
	require.Error(t, err)
	f.err = &limiter.ChargeError{Err: limiter.ErrState}
	_, err = s.Take(ctx, one())
	require.ErrorIs(t, err, limiter.ErrState)
	require.IsType(t, &limiter.ChargeError{}, err)
	f.err = fmt.Errorf("store: %w", limiter.ErrOverloaded)
	for start := time.Now(); time.Since(start) < 300*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		_, err = s.Take(ctx, one())
		require.ErrorIs(t, err, limiter.ErrOverloaded)
	}
	gone, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	f.hang.Store(true)
	_, err = s.Take(gone, one())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	f.hang.Store(false)
	f.err = nil
	_, err = s.Take(ctx, one())
	require.NoError(t, err)
}

func TestCallsUnderWayAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, s := newFaulty(t, breaker.Config{InFlight: 10})
		f.hang.Store(true)
		slow, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		var busy atomic.Int64
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if _, err := s.Take(slow, one()); errors.Is(err, breaker.ErrBusy) && errors.Is(err, limiter.ErrOverloaded) {
					busy.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 40, busy.Load())
		require.EqualValues(t, 10, f.calls.Load())
	})
}

func TestARefundThatDoesNotGetThroughIsNotRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { refundWhileOpen(t) })
}

func refundWhileOpen(t *testing.T) {
	f, s := newFaulty(t, breaker.Config{Faults: 1, Pause: time.Hour})
	charges := one()
	ok, err := s.Take(ctx, charges)
	require.NoError(t, err)
	require.True(t, ok)
	f.err = errors.New("down")
	for range 2 {
		_, err = s.Take(ctx, one())
		require.Error(t, err)
		time.Sleep(300 * time.Millisecond)
	}
	require.ErrorIs(t, s.Refund(ctx, charges), breaker.ErrOpen)
	require.False(t, charges[0].Taken)
	require.ErrorIs(t, s.Peek(ctx, one()), breaker.ErrOpen)
	require.ErrorIs(t, s.Forget(ctx, []string{"k"}), breaker.ErrOpen)
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	m := memstore.New(memstore.Config{})
	for want, c := range map[string]breaker.Config{
		"breaker: Config.Store is nil":                    {},
		"breaker: Config.Faults is -1, want at least 0":   {Store: m, Faults: -1},
		"breaker: Config.Pause is -1ns, want at least 0":  {Store: m, Pause: -1},
		"breaker: Config.InFlight is -1, want at least 0": {Store: m, InFlight: -1},
	} {
		_, err := breaker.New(c)
		require.EqualError(t, err, want)
	}
}
