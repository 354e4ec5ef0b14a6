package limiter_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"authguard/limiter"
	"authguard/limiter/memstore"
)

// handClock makes the examples' answers the same at every run.
type handClock struct{ t time.Time }

func (c *handClock) now() time.Time { return c.t }

func newHandClock() *handClock { return &handClock{time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)} }

// Ten at once, then one a second.
func Example() {
	l, err := limiter.New(memstore.New(memstore.Config{}), limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Second})
	if err != nil {
		panic(err)
	}
	for range 10 {
		l.Allow(context.Background(), "alice")
	}
	r, err := l.Allow(context.Background(), "alice")
	fmt.Println(r.Allowed, r.RetryAfter.Round(time.Second), err)
	r, err = l.Allow(context.Background(), "bob")
	fmt.Println(r.Allowed, r.Remaining, err)
	// Output:
	// false 1s <nil>
	// true 9 <nil>
}

func ExampleNew_tiers() {
	clock := newHandClock()
	l, err := limiter.New(memstore.New(memstore.Config{Now: clock.now}),
		limiter.SlidingWindowCounter{Limit: 10, Window: time.Second},
		limiter.SlidingWindowCounter{Limit: 100, Window: time.Minute},
		limiter.SlidingWindowCounter{Limit: 1_000, Window: time.Hour},
		limiter.SlidingWindowCounter{Limit: 10_000, Window: 24 * time.Hour},
	)
	if err != nil {
		panic(err)
	}
	r, err := l.AllowN(context.Background(), "key", 10)
	fmt.Println(r.Allowed, r.Remaining, err)
	r, err = l.Allow(context.Background(), "key")
	for _, tier := range r.Denying() {
		fmt.Println("denied by", tier.Limit, "- retry after", tier.Decision.RetryAfter)
	}
	fmt.Println("still left this minute:", r.Tiers[1].Decision.Remaining, err)
	// Output:
	// true 0 <nil>
	// denied by about 10 per 1s - retry after 1.1s
	// still left this minute: 90 <nil>
}

func ExampleLimiter_AllowN() {
	l, err := limiter.New(memstore.New(memstore.Config{}), limiter.FixedWindow{Limit: 50, Window: 24 * time.Hour})
	if err != nil {
		panic(err)
	}
	for range 3 { // an export costs 20
		r, err := l.AllowN(context.Background(), "exports", 20)
		fmt.Println(r.Allowed, r.Remaining, err)
	}
	_, err = l.AllowN(context.Background(), "exports", 51)
	fmt.Println(errors.Is(err, limiter.ErrCostTooHigh))
	// Output:
	// true 30 <nil>
	// true 10 <nil>
	// false 10 <nil>
	// true
}

func ExampleLimiter_AllowMember() {
	l, err := limiter.New(memstore.New(memstore.Config{}), limiter.Distinct{Limit: 2, Window: time.Hour})
	if err != nil {
		panic(err)
	}
	for _, card := range []string{"4111", "5500", "4111", "3400"} {
		r, err := l.AllowMember(context.Background(), "device 17", card)
		fmt.Println(card, r.Allowed, err)
	}
	// Output:
	// 4111 true <nil>
	// 5500 true <nil>
	// 4111 true <nil>
	// 3400 false <nil>
}

func ExampleLimiter_Peek() {
	l, err := limiter.New(memstore.New(memstore.Config{}), limiter.SlidingWindow{Limit: 5, Window: time.Hour})
	if err != nil {
		panic(err)
	}
	l.AllowN(context.Background(), "k", 3)
	for range 2 { // looking costs nothing
		r, err := l.Peek(context.Background(), "k")
		fmt.Println(r.Allowed, r.Remaining, err)
	}
	// Output:
	// true 2 <nil>
	// true 2 <nil>
}

func ExampleLimiter_Reset() {
	l, err := limiter.New(memstore.New(memstore.Config{}), limiter.SlidingWindow{Limit: 5, Window: time.Hour})
	if err != nil {
		panic(err)
	}
	l.AllowN(context.Background(), "k", 5)
	fmt.Println(l.Reset(context.Background(), "k"))
	r, err := l.Allow(context.Background(), "k")
	fmt.Println(r.Allowed, err)
	// Output:
	// <nil>
	// true <nil>
}

// A soft limit delays instead of refusing: each ask is told its place in a
// queue of bounded length, and goes on when its turn comes.
func ExampleLimiter_Wait() {
	l, err := limiter.New(memstore.New(memstore.Config{}), limiter.LeakyBucket{Capacity: 3, Leak: 1, Per: 20 * time.Millisecond})
	if err != nil {
		panic(err)
	}
	var (
		wg           sync.WaitGroup
		mu           sync.Mutex
		served, full int
		start        = time.Now()
	)
	for range 5 {
		wg.Go(func() {
			err := l.Wait(context.Background(), "")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				served++
			case errors.Is(err, limiter.ErrDenied):
				full++
			}
		})
	}
	wg.Wait()
	fmt.Println(served, "served,", full, "found the queue full; evenly:", time.Since(start) >= 40*time.Millisecond)
	// Output: 3 served, 2 found the queue full; evenly: true
}

// The same by hand, for those who schedule the work themselves.
func ExampleLeakyBucket() {
	clock := newHandClock()
	l, err := limiter.New(memstore.New(memstore.Config{Now: clock.now}), limiter.LeakyBucket{Capacity: 3, Leak: 2, Per: time.Second})
	if err != nil {
		panic(err)
	}
	for range 4 {
		r, err := l.Allow(context.Background(), "printer")
		fmt.Println(r.Allowed, r.Delay, err)
	}
	// Output:
	// true 0s <nil>
	// true 500ms <nil>
	// true 1s <nil>
	// false 0s <nil>
}

// Three failures are free, then the wait doubles.
func ExampleBackoff() {
	clock := newHandClock()
	l, err := limiter.New(memstore.New(memstore.Config{Now: clock.now}), limiter.Backoff{
		Free: 3, Base: time.Second, Factor: 2, Max: time.Minute, LockAfter: 7, Forget: 24 * time.Hour, ForgetBeyond: 30 * 24 * time.Hour})
	if err != nil {
		panic(err)
	}
	for range 7 {
		r, err := l.Allow(context.Background(), "pin")
		if !r.Allowed {
			fmt.Println("wait", r.RetryAfter, err)
			clock.t = clock.t.Add(r.RetryAfter)
			l.Allow(context.Background(), "pin")
		}
	}
	r, err := l.Peek(context.Background(), "pin")
	fmt.Println("locked:", r.Locked, err)
	// Output:
	// wait 1s <nil>
	// wait 2s <nil>
	// wait 4s <nil>
	// wait 8s <nil>
	// locked: true <nil>
}
