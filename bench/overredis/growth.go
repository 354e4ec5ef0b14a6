package overredis

import (
	"context"
	"slices"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"authguard/bench/harness"
	"authguard/bench/server"
	"authguard/limiter"
)

// Growth draws how a check over Redis grows.
func Growth(s *harness.Session) error {
	srv, err := server.Start()
	if err != nil {
		return err
	}
	defer srv.Close()
	f := family{Session: s, server: srv, time: 250 * time.Millisecond, callers: []int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024}}
	if s.Quick {
		f.time, f.callers = 10*time.Millisecond, []int{1, 32}
	}
	for _, part := range []func() error{f.byLimits, f.byWindow, f.byCallers, f.byInstances} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// figure is one figure of what a contender measures.
func figure(m harness.Metric, make func(x int) harness.Contender) func(int) (float64, error) {
	return func(x int) (float64, error) {
		sample, err := make(x).Run()
		return sample[string(m)], err
	}
}

func (f *family) byLimits() error {
	return f.Draw(harness.Curve{
		Name: "Limits of a check, over Redis", File: "limits-redis.svg", X: "limits", Y: "server CPU µs a check",
		About: "One caller, so that nothing is shared; token buckets, and redis_rate's GCRA one call after the other.",
		At:    []int{1, 2, 3, 4, 6, 8, 12},
		Lines: []harness.Line{
			{Name: "token bucket", Run: figure(ServerCPU, func(n int) harness.Contender {
				return f.ours("", 1, fresh, slices.Repeat([]limiter.Limit{bucket}, n), together)
			})},
			{Name: "redis_rate", Run: figure(ServerCPU, func(n int) harness.Contender {
				return f.redisRate("", 1, fresh, slices.Repeat([]redis_rate.Limit{rates[2]}, n))
			})},
		},
	})
}

func (f *family) byWindow() error {
	law := func(limit int) limiter.SlidingWindow {
		return limiter.SlidingWindow{Limit: int64(limit), Window: window.Window}
	}
	ids := func(limit int) pace { return pace{id: func(n int) int { return n / limit }} }
	return f.Draw(harness.Curve{
		Name: "An exact window's limit, over Redis", File: "window-redis.svg", X: "limit", Y: "server CPU µs a check",
		About: "One caller that fills keys from empty to full: the law SlidingWindow, and the textbook's sorted set.",
		At:    []int{5, 10, 30, 100, 300, 1000},
		Lines: []harness.Line{
			{Name: "exact window", Run: figure(ServerCPU, func(limit int) harness.Contender {
				return f.ours("", 1, ids(limit), []limiter.Limit{law(limit)}, together)
			})},
			{Name: "sorted set", Run: figure(ServerCPU, func(limit int) harness.Contender {
				return f.contender("", 1, ids(limit), func(c *redis.Client) (asking, error) {
					err := textbook.Load(context.Background(), c).Err()
					return func(caller int, ids pace) check { return sortedSet(c, law(limit), caller, ids) }, err
				})
			})},
		},
	})
}

func (f *family) byCallers() error {
	one := []limiter.Limit{bucket}
	return f.Draw(harness.Curve{
		Name: "Callers of one process", File: "callers.svg", X: "callers", Y: "checks/s",
		About: "One token bucket, admitted, from one process; redis_rate's GCRA is the same law.",
		At:    f.callers,
		Lines: []harness.Line{
			{Name: "token bucket", Run: figure(Rate, func(n int) harness.Contender { return f.ours("", n, fresh, one, together) })},
			{Name: "…without coalescing", Run: figure(Rate, func(n int) harness.Contender { return f.ours("", n, fresh, one, apart) })},
			{Name: "redis_rate", Run: figure(Rate, func(n int) harness.Contender { return f.redisRate("", n, fresh, rates[2:]) })},
			{Name: "floor: bare EVALSHA", Run: figure(Rate, func(n int) harness.Contender { return f.bare("", n) })},
		},
	})
}

// byInstances has so many instances, each with a client, a store and callers of its
// own, share a server.
func (f *family) byInstances() error {
	const each = 32
	instances := func(limits []limiter.Limit) func(int) (float64, error) {
		return func(n int) (float64, error) {
			if err := f.server.Flush(); err != nil {
				return 0, err
			}
			var checks []check
			for range n {
				client, err := f.server.Client(each)
				if err != nil {
					return 0, err
				}
				defer client.Close()
				all, err := together(client, each)
				if err != nil {
					return 0, err
				}
				for _, store := range all {
					checks = append(checks, ours(store, limits, len(checks), fresh))
				}
			}
			sample, err := load(f.server, f.time, true, checks)
			return sample[string(Rate)], err
		}
	}
	return f.Draw(harness.Curve{
		Name: "Instances on one Redis", File: "instances.svg", X: "instances", Y: "checks/s",
		About: "Each instance has a client, a store and 32 callers of its own; all are in this process and share the machine with the server, " +
			"so the curve shows what they cost each other, not what more machines would add. Three limits are " + kindsOfLimits + ".",
		At: []int{1, 2, 4, 8},
		Lines: []harness.Line{
			{Name: "token bucket", Run: instances([]limiter.Limit{bucket})},
			{Name: "three limits", Run: instances(three)},
		},
	})
}
