package overredis

import (
	"context"
	"slices"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"authguard/bench/harness"
	"authguard/bench/server"
	"authguard/limiter"
)

const about = "Each caller is a goroutine that asks again as soon as it is answered. All clients have a connection for each caller; " +
	"client and server share the machine, so checks a second depend on both, and what the server and the client use of the processor " +
	"for one check tells them apart and is steadier. Latency includes making the keys. " +
	"*Coalescing* is `redisstore.New` as it is: calls that come while a script is under way go together in the next. " +
	"*Without*, each caller has a store of its own, so that each check is a script call of its own. " +
	"The server has no persistence and is flushed before each run."

// Run measures the family.
func Run(s *harness.Session) error {
	s.Section("Over Redis", about)
	srv, err := server.Start()
	if err != nil {
		return err
	}
	defer srv.Close()
	f := family{Session: s, server: srv, time: 600 * time.Millisecond, callers: []int{1, 64, 256}}
	if s.Quick {
		f.time, f.callers = 30*time.Millisecond, []int{1, 64}
	}
	for _, part := range []func() error{f.threeLimits, f.oneLimit, f.refused, f.windows, f.memory} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

type family struct {
	*harness.Session
	server  *server.Server
	time    time.Duration // of one run
	callers []int
}

// contender is measured with so many callers, each of which uses what prepare
// gives it.
func (f *family) contender(name string, callers int, ids pace, prepare func(*redis.Client) (asking, error)) harness.Contender {
	return harness.Contender{Name: name, Run: func() (harness.Sample, error) {
		if err := f.server.Flush(); err != nil {
			return nil, err
		}
		client, err := f.server.Client(callers)
		if err != nil {
			return nil, err
		}
		defer client.Close()
		caller, err := prepare(client)
		if err != nil {
			return nil, err
		}
		checks := make([]check, callers)
		for i := range checks {
			checks[i] = caller(i, ids)
		}
		if ids.full {
			if err := exhaust(checks); err != nil {
				return nil, err
			}
		}
		return load(f.server, f.time, !ids.full, checks)
	}}
}

// asking is how a caller asks.
type asking func(caller int, ids pace) check

func (f *family) ours(name string, n int, ids pace, limits []limiter.Limit, make func(*redis.Client, int) ([]limiter.Store, error)) harness.Contender {
	return f.contender(name, n, ids, func(c *redis.Client) (asking, error) {
		all, err := make(c, n)
		return func(caller int, ids pace) check { return ours(all[caller], limits, caller, ids) }, err
	})
}

func (f *family) redisRate(name string, n int, ids pace, limits []redis_rate.Limit) harness.Contender {
	return f.contender(name, n, ids, func(c *redis.Client) (asking, error) {
		l := redis_rate.NewLimiter(c)
		return func(caller int, ids pace) check { return sequentially(l, limits, caller, ids) }, nil
	})
}

// autoPipelined is redis_rate over go-redis's AutoPipeline, which sends what
// concurrent callers ask in one pipeline.
func (f *family) autoPipelined(name string, n int, ids pace, limits []redis_rate.Limit) harness.Contender {
	return f.contender(name, n, ids, func(c *redis.Client) (asking, error) {
		pipeline, err := c.AutoPipeline()
		if err != nil {
			return nil, err
		}
		l := redis_rate.NewLimiter(pipeline)
		return func(caller int, ids pace) check { return sequentially(l, limits, caller, ids) }, nil
	})
}

func (f *family) pipelined(name string, n int, ids pace, limits []redis_rate.Limit) harness.Contender {
	return f.contender(name, n, ids, func(c *redis.Client) (asking, error) {
		sha, err := scriptOf(f.server)
		return func(caller int, ids pace) check { return pipelined(c, sha, limits, caller, ids) }, err
	})
}

func (f *family) bare(name string, n int) harness.Contender {
	return f.contender(name, n, fresh, func(c *redis.Client) (asking, error) {
		ask, err := bare(c)
		return func(int, pace) check { return ask }, err
	})
}

func (f *family) rueidis(name string, n int) harness.Contender {
	return harness.Contender{Name: name, Run: func() (harness.Sample, error) {
		client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{f.server.Addr}, DisableCache: true})
		if err != nil {
			return nil, err
		}
		defer client.Close()
		if err := client.Do(context.Background(), client.B().ScriptLoad().Script(nothingSource).Build()).Error(); err != nil {
			return nil, err
		}
		return load(f.server, f.time, true, slices.Repeat([]check{bareRueidis(client)}, n))
	}}
}
