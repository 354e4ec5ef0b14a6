package overredis

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"authguard/bench/harness"
	"authguard/limiter"
)

// textbook is the sliding window that most tutorials show, put into one script:
// a sorted set with a member for each admission, scored by its instant.
var textbook = redis.NewScript(`
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[2])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then
  return 0
end
redis.call('ZADD', KEYS[1], now, ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[2] / 1000)
return 1
`)

// sortedSet asks it for a limit.
func sortedSet(client *redis.Client, l limiter.SlidingWindow, caller int, ids pace) check {
	ctx := context.Background()
	return func(n int) (bool, error) {
		admitted, err := textbook.EvalSha(ctx, client, []string{key('a', caller, ids.id(n))}, l.Limit, l.Window.Microseconds(), uuid.NewString()).Int()
		return admitted == 1, err
	}
}

// windows sets our exact window beside the textbook's.
func (f *family) windows() error {
	const callers = 64
	for _, limit := range []int64{fives, 100} {
		l := limiter.SlidingWindow{Limit: limit, Window: window.Window}
		ids := pace{id: func(n int) int { return n / int(limit) }} // fresh when it is full
		textbooks := fmt.Sprintf("sorted set, %d", limit)
		e := harness.Experiment{
			Name: fmt.Sprintf("An exact window of %d beside the textbook's sorted set, %s", limit, plural(callers)),
			About: "The sorted set has a member (a UUID) for each admission and is asked in one script: " +
				"ZREMRANGEBYSCORE, ZCARD, ZADD, PEXPIRE. Ours packs the instants into one string. Both fill keys from empty to full.",
			Metrics: metrics,
			Contenders: []harness.Contender{
				f.ours(coalescing, callers, ids, []limiter.Limit{l}, together),
				f.ours(without, callers, ids, []limiter.Limit{l}, apart),
				f.contender(textbooks, callers, ids, func(c *redis.Client) (asking, error) {
					err := textbook.Load(context.Background(), c).Err()
					return func(caller int, ids pace) check { return sortedSet(c, l, caller, ids) }, err
				}),
			},
			Ratios: []harness.Ratio{{Metric: Rate, Per: textbooks}, {Metric: ServerCPU, Per: textbooks}},
		}
		if _, err := f.Measure(e); err != nil {
			return err
		}
	}
	return nil
}
