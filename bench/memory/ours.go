package memory

import (
	"context"
	"time"

	"authguard/limiter"
	"authguard/limiter/memstore"
)

// A take asks for one unit of a key. It is for one goroutine.
type take func(key string) (bool, error)

// A maker is a contender: make gives an empty limiter that admits so many of each
// of at most so many keys within an hour, as a take for every goroutine that asks.
type maker struct {
	name string
	make func(limit, keys int) (takes func() take, closing func(), err error)
}

// Names of rows that goals and ratios speak of.
const (
	oursBucket  = "**ours**: token bucket"
	oursWindow  = "**ours**: exact window"
	oursLimiter = "**ours**: token bucket, by limiter.New"
	sethvargo   = "sethvargo/go-limiter"
)

func bucket(limit int) limiter.Limit {
	return limiter.TokenBucket{Capacity: int64(limit), Refill: int64(limit), Per: 30 * 24 * time.Hour}
}

func fixed(limit int) limiter.Limit {
	return limiter.FixedWindow{Limit: int64(limit), Window: 30 * 24 * time.Hour}
}

func counter(limit int) limiter.Limit {
	return limiter.SlidingWindowCounter{Limit: int64(limit), Window: 15 * 24 * time.Hour}
}

func window(limit int) limiter.Limit {
	return limiter.SlidingWindow{Limit: int64(limit), Window: time.Hour}
}

func newStore() *memstore.Store { return memstore.New(memstore.Config{MaxBytes: 512 << 20}) }

// ours asks the store itself.
func ours(name string, law func(limit int) limiter.Limit) maker {
	return maker{name, func(limit, _ int) (func() take, func(), error) {
		store, l, ctx := newStore(), law(limit), context.Background()
		return func() take {
			charges := []limiter.Charge{{Limit: l, Ask: limiter.Ask{Cost: 1}}}
			return func(key string) (bool, error) {
				charges[0].Key = key
				return store.Take(ctx, charges)
			}
		}, nothing, nil
	}}
}

// oursFace asks through limiter.New.
func oursFace(name string, law func(limit int) limiter.Limit) maker {
	return maker{name, func(limit, _ int) (func() take, func(), error) {
		l, err := limiter.New(newStore(), law(limit))
		ctx := context.Background()
		return same(func(key string) (bool, error) {
			r, err := l.Allow(ctx, key)
			return r.Allowed, err
		}), nothing, err
	}}
}

// same gives all goroutines one take.
func same(t take) func() take { return func() take { return t } }

func nothing() {}

var ourLaws = []maker{
	ours(oursBucket, bucket),
	ours("**ours**: fixed window", fixed),
	ours("**ours**: sliding window counter", counter),
	oursFace(oursLimiter, bucket),
}
