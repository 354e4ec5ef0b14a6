package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
)

// gate lets a client's messages through one by one.
type gate struct {
	redis.Hook
	came chan struct{} // one for each message that has come to it
	open chan struct{}
}

func (g gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (g gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		g.came <- struct{}{}
		select {
		case <-g.open:
			return next(ctx, cmd)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// A term is a context whose deadline passes when the test says so.
type term struct {
	context.Context
	passed chan struct{}
}

func (d term) Done() <-chan struct{} { return d.passed }

func (d term) Err() error {
	select {
	case <-d.passed:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// Whoever finds no room because others are being served has met a crowd. Were that
// an outage, anybody could choose one by sending it. A server that serves nobody is
// down, however many wait for it.
func TestACrowdIsNoOutage(t *testing.T) {
	for _, up := range []bool{true, false} {
		client := newClient(t, testserver.Redis(t))
		s := newStore(t, client, nil)
		heavy := func(keys ...string) (charges []limiter.Charge) {
			for _, k := range keys {
				charges = append(charges, limiter.Charge{Key: k, Limit: limiter.SlidingWindow{Limit: 1000, Window: time.Hour}, Ask: limiter.Ask{Cost: 1}})
			}
			return charges
		}
		_, err := s.Take(ctx, heavy("warm"))
		require.NoError(t, err)
		g := gate{came: make(chan struct{}, 100), open: make(chan struct{})}
		client.AddHook(g)
		t.Cleanup(func() { close(g.open) })
		term := term{ctx, make(chan struct{})}
		const crowd = 8 // each so much work that it goes alone
		errs := make([]error, crowd)
		first := make(chan error, 1)
		go func() { _, err := s.Take(term, heavy("first")); first <- err }()
		<-g.came // it is under way, the others come behind it
		var wg sync.WaitGroup
		for i := range crowd {
			wg.Go(func() {
				k := fmt.Sprint("k", i)
				_, errs[i] = s.Take(term, heavy(k+"a", k+"b", k+"c", k+"d", k+"e", k+"f"))
			})
		}
		require.Eventually(t, func() bool { return s.Waiting() == crowd }, time.Minute, time.Millisecond)
		if up {
			g.open <- struct{}{}
			require.NoError(t, <-first)
			<-g.came // the next is under way
		}
		close(term.passed)
		if !up {
			err := <-first
			require.NotErrorIs(t, err, limiter.ErrOverloaded)
			require.Error(t, err)
		}
		wg.Wait()
		for _, err := range errs {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			if up {
				require.ErrorIs(t, err, limiter.ErrOverloaded)
			} else {
				require.NotErrorIs(t, err, limiter.ErrOverloaded)
			}
		}
	}
}
