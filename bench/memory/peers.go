package memory

import (
	"context"
	"sync"
	"time"

	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	throttledstore "github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	ulule "github.com/ulule/limiter/v3/drivers/store/memory"
	"golang.org/x/time/rate"
)

var peers = []maker{
	{sethvargo, func(limit, _ int) (func() take, func(), error) {
		store, err := memorystore.New(&memorystore.Config{Tokens: uint64(limit), Interval: time.Hour})
		if err != nil {
			return nil, nil, err
		}
		ctx := context.Background()
		closing := func() { store.Close(ctx) }
		return same(func(key string) (bool, error) {
			_, _, _, ok, err := store.Take(ctx, key)
			return ok, err
		}), closing, nil
	}},
	{"x/time/rate, map and mutex", func(limit, _ int) (func() take, func(), error) {
		var mu sync.Mutex
		all := map[string]*rate.Limiter{}
		return same(func(key string) (bool, error) {
			mu.Lock()
			l := all[key]
			if l == nil {
				l = newRate(limit)
				all[key] = l
			}
			mu.Unlock()
			return l.Allow(), nil
		}), nothing, nil
	}},
	{"x/time/rate, sync.Map", func(limit, _ int) (func() take, func(), error) {
		var all sync.Map
		return same(func(key string) (bool, error) {
			l, ok := all.Load(key)
			if !ok {
				l, _ = all.LoadOrStore(key, newRate(limit))
			}
			return l.(*rate.Limiter).Allow(), nil
		}), nothing, nil
	}},
	{"ulule/limiter", func(limit, _ int) (func() take, func(), error) {
		l := limiter.New(ulule.NewStore(), limiter.Rate{Period: time.Hour, Limit: int64(limit)})
		ctx := context.Background()
		return same(func(key string) (bool, error) {
			r, err := l.Get(ctx, key)
			return !r.Reached, err
		}), nothing, nil
	}},
	{"throttled", func(limit, _ int) (func() take, func(), error) {
		store, err := throttledstore.NewCtx(0)
		if err != nil {
			return nil, nil, err
		}
		l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerHour(1), MaxBurst: limit - 1})
		if err != nil {
			return nil, nil, err
		}
		ctx := context.Background()
		return same(func(key string) (bool, error) {
			limited, _, err := l.RateLimitCtx(ctx, key, 1)
			return !limited, err
		}), nothing, nil
	}},
	{"floor: flat table, with the clock", func(limit, keys int) (func() take, func(), error) {
		return same(newTable(keys, int64(limit), true).take), nothing, nil
	}},
	{"floor: flat table", func(limit, keys int) (func() take, func(), error) {
		return same(newTable(keys, int64(limit), false).take), nothing, nil
	}},
}

func newRate(limit int) *rate.Limiter { return rate.NewLimiter(rate.Every(time.Hour), limit) }
