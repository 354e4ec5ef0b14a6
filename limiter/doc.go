// Package limiter holds the laws of rate limiting and the contract of the
// stores that keep their counts.
//
// A law ([TokenBucket], [LeakyBucket], [FixedWindow], [SlidingWindow],
// [SlidingWindowCounter], [Backoff], [Distinct], [Block]) is a struct with its numbers: a
// [Limit]. It is pure arithmetic. Given what a
// store remembers of a key, the instant, and how much is asked, it says yes or
// no, how long to wait, and what to remember next. It knows no clock, no store
// and no goroutine.
//
// A [Store] remembers. It takes a whole slice of [Charge] at once, and either
// every limit admits and all of them are charged, or none is:
//
//	store := memstore.New(memstore.Config{})
//	charges := []limiter.Charge{
//		{Key: "user:7", Limit: limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}, Ask: limiter.Ask{Cost: 1}},
//		{Key: "addr:192.0.2.1", Limit: limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Second}, Ask: limiter.Ask{Cost: 1}},
//	}
//	ok, err := store.Take(ctx, charges)
//
// Whoever only wants to limit something takes a [Limiter]:
//
//	l, err := limiter.New(store, limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Second})
//	r, err := l.Allow(ctx, "alice")
//
// Laws and stores are two open sets that meet here: a new law works on every
// store, a new store with every law. Package limitertest checks both against
// the contract written at [Limit] and [Store].
//
// All time inside is whole microseconds since 1970 in an int64, so that the
// same numbers come out of Go, of Lua and of a file.
package limiter
