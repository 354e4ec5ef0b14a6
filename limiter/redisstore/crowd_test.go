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
	"authguard/limiter/redisstore"
)

// gate lets a client's messages through one by one.
type gate struct {
	redis.Hook
	open chan struct{}
}

func (g gate) DialHook(next redis.DialHook) redis.DialHook { return next }

func (g gate) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (g gate) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		select {
		case <-g.open:
			return next(ctx, cmd)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Whoever finds no room because others are being served has met a crowd. Were that
// an outage, anybody could choose one by sending it. A server that serves nobody is
// down, however many wait for it.
func TestACrowdIsNoOutage(t *testing.T) {
	for _, up := range []bool{true, false} {
		client := newClient(t, testserver.Redis(t))
		s, err := redisstore.New(redisstore.Config{Client: client, Timeout: 2 * time.Second})
		require.NoError(t, err)
		heavy := func(keys ...string) (charges []limiter.Charge) {
			for _, k := range keys {
				charges = append(charges, limiter.Charge{Key: k, Limit: limiter.SlidingWindow{Limit: 1000, Window: time.Hour}, Ask: limiter.Ask{Cost: 1}})
			}
			return charges
		}
		_, err = s.Take(ctx, heavy("warm"))
		require.NoError(t, err)
		g := gate{open: make(chan struct{})}
		client.AddHook(g)
		const crowd = 8 // each so much work that it goes alone
		errs := make([]error, crowd)
		var first error
		var wg sync.WaitGroup
		wg.Go(func() { _, first = s.Take(ctx, heavy("first")) })
		time.Sleep(300 * time.Millisecond) // it is under way, the others come behind it
		for i := range crowd {
			wg.Go(func() {
				k := fmt.Sprint("k", i)
				_, errs[i] = s.Take(ctx, heavy(k+"a", k+"b", k+"c", k+"d", k+"e", k+"f"))
			})
		}
		time.Sleep(300 * time.Millisecond)
		if up {
			g.open <- struct{}{}
		}
		wg.Wait()
		if up {
			require.NoError(t, first)
		} else {
			require.NotErrorIs(t, first, limiter.ErrOverloaded)
			require.Error(t, first)
		}
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
