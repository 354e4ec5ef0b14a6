package overredis

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"authguard/bench/harness"
	"authguard/limiter"
)

// Usage is what the server says that a key takes.
const Usage harness.Metric = "MEMORY USAGE, bytes"

const (
	fiveOfUs    = "**ours**: window of 5, full"
	fiveOfSet   = "sorted set: 5 members"
	hundredOfUs = "**ours**: window of 100, full"
	hundredSet  = "sorted set: 100 members"
)

// memory asks the server what a key of each law takes when it is used up.
func (f *family) memory() error {
	hundred := limiter.SlidingWindow{Limit: 100, Window: window.Window}
	_, err := f.Measure(harness.Experiment{
		Name:    "Memory of a key",
		About:   "Keys of 29 bytes, as package guard makes them, with the state of a limit that is used up.",
		Metrics: []harness.Metric{Usage},
		Contenders: []harness.Contender{
			f.used(fiveOfUs, window, fives),
			f.usedSet(fiveOfSet, window),
			f.used(hundredOfUs, hundred, 100),
			f.usedSet(hundredSet, hundred),
			f.used("**ours**: token bucket", limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Minute}, 10),
			f.used("**ours**: leaky bucket", limiter.LeakyBucket{Capacity: 10, Leak: 1, Per: time.Minute}, 10),
			f.used("**ours**: fixed window", limiter.FixedWindow{Limit: 10, Window: 240 * time.Hour}, 10),
			f.used("**ours**: sliding window counter", limiter.SlidingWindowCounter{Limit: 10, Window: 240 * time.Hour}, 10),
			f.used("**ours**: backoff after 10 failures", limiter.Backoff{Free: 10, Base: 30 * time.Second, Factor: 2, Max: time.Hour, Forget: time.Hour, ForgetBeyond: 24 * time.Hour}, 10),
			f.used("**ours**: distinct, 10 members", limiter.Distinct{Limit: 10, Window: time.Hour}, 10),
			f.usedRate("redis_rate: GCRA"),
		},
		Goals: []harness.Goal{
			{Of: fiveOfUs, Metric: Usage, AtMost: 121},
			{Of: fiveOfUs, Metric: Usage, Per: fiveOfSet, AtMost: 0.37},
			{Of: hundredOfUs, Metric: Usage, Per: hundredSet, AtMost: 0.2},
		},
	})
	return err
}

// used is a key of ours after n admissions; if l has a limit, it then refuses.
func (f *family) used(name string, l limiter.Limit, n int) harness.Contender {
	return f.usage(name, key('a', 0, 0), func() error {
		client, err := f.server.Client(1)
		if err != nil {
			return err
		}
		defer client.Close()
		all, err := together(client, 1)
		if err != nil {
			return err
		}
		for i := range n + 1 {
			charges := []limiter.Charge{{Key: key('a', 0, 0), Limit: l, Ask: limiter.Ask{Cost: 1, Member: limiter.Member(fmt.Sprint(i))}}}
			admitted, err := all[0].Take(context.Background(), charges)
			if err != nil {
				return err
			}
			if admitted != (i < n) {
				return fmt.Errorf("ask %d: admitted is %v", i+1, admitted)
			}
		}
		return nil
	})
}

func (f *family) usedSet(name string, l limiter.SlidingWindow) harness.Contender {
	return f.usage(name, key('a', 0, 0), func() error {
		client, err := f.server.Client(1)
		if err != nil {
			return err
		}
		defer client.Close()
		if err := textbook.Load(context.Background(), client).Err(); err != nil {
			return err
		}
		ask := sortedSet(client, l, 0, pace{id: func(int) int { return 0 }})
		for i := range int(l.Limit) + 1 {
			admitted, err := ask(i)
			if err != nil {
				return err
			}
			if admitted != (i < int(l.Limit)) {
				return fmt.Errorf("ask %d: admitted is %v", i+1, admitted)
			}
		}
		return nil
	})
}

func (f *family) usedRate(name string) harness.Contender {
	return f.usage(name, "rate:"+key('a', 0, 0), func() error {
		client, err := f.server.Client(1)
		if err != nil {
			return err
		}
		defer client.Close()
		_, err = redis_rate.NewLimiter(client).Allow(context.Background(), key('a', 0, 0), rates[0])
		return err
	})
}

func (f *family) usage(name, key string, use func() error) harness.Contender {
	return harness.Contender{Name: name, Run: func() (harness.Sample, error) {
		if err := f.server.Flush(); err != nil {
			return nil, err
		}
		if err := use(); err != nil {
			return nil, err
		}
		bytes, err := f.server.MemoryUsage(key)
		return harness.Sample{string(Usage): float64(bytes)}, err
	}}
}
