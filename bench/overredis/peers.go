package overredis

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"authguard/bench/server"
	"authguard/limiter"
)

// The limits of ours, as redis_rate has them: all three are its one law, GCRA.
var rates = []redis_rate.Limit{
	{Rate: fives, Burst: fives, Period: 900 * time.Second},
	{Rate: limiter.MaxLimit, Burst: limiter.MaxLimit, Period: time.Hour},
	{Rate: 1, Burst: limiter.MaxLimit, Period: time.Second},
}

// sequentially asks redis_rate for one limit after the other, all of them.
func sequentially(l *redis_rate.Limiter, limits []redis_rate.Limit, caller int, ids pace) check {
	ctx := context.Background()
	return func(n int) (bool, error) {
		id, admitted := ids.id(n), true
		for i, limit := range limits {
			r, err := l.Allow(ctx, key('a'+byte(i), caller, id), limit)
			if err != nil {
				return false, err
			}
			admitted = admitted && r.Allowed > 0
		}
		return admitted, nil
	}
}

// pipelined sends redis_rate's script for all limits in one pipeline, which its
// API has no call for; sha is the script's name.
func pipelined(client *redis.Client, sha string, limits []redis_rate.Limit, caller int, ids pace) check {
	ctx := context.Background()
	return func(n int) (bool, error) {
		id := ids.id(n)
		p := client.Pipeline()
		cmds := make([]*redis.Cmd, len(limits))
		for i, l := range limits {
			cmds[i] = p.EvalSha(ctx, sha, []string{"rate:" + key('a'+byte(i), caller, id)}, l.Burst, l.Rate, l.Period.Seconds(), 1)
		}
		if _, err := p.Exec(ctx); err != nil {
			return false, err
		}
		admitted := true
		for _, cmd := range cmds {
			got, err := cmd.Slice()
			if err != nil {
				return false, err
			}
			allowed, ok := got[0].(int64)
			if !ok {
				return false, fmt.Errorf("redis_rate's script answered %v", got)
			}
			admitted = admitted && allowed > 0
		}
		return admitted, nil
	}
}

// scriptOf is the name under which the server knows redis_rate's script.
func scriptOf(s *server.Server) (string, error) {
	client, err := s.Client(1)
	if err != nil {
		return "", err
	}
	defer client.Close()
	spy := new(spy)
	client.AddHook(spy)
	if _, err := redis_rate.NewLimiter(client).Allow(context.Background(), "spied", rates[0]); err != nil {
		return "", err
	}
	if spy.sha == "" {
		return "", errors.New("redis_rate sent no evalsha")
	}
	return spy.sha, nil
}

// spy notes the name of the last script that a client calls.
type spy struct {
	redis.Hook
	sha string
}

func (s *spy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *spy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			s.sha, _ = cmd.Args()[1].(string)
		}
		return next(ctx, cmd)
	}
}

func (s *spy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// nothing is a script that decides nothing: what any call of a script costs.
const nothingSource = "return 1"

var nothing = redis.NewScript(nothingSource)

// bare is the floor of a script's call, each sent by itself.
func bare(client *redis.Client) (check, error) {
	ctx := context.Background()
	if err := nothing.Load(ctx, client).Err(); err != nil {
		return nil, err
	}
	return func(int) (bool, error) {
		n, err := nothing.EvalSha(ctx, client, nil).Int()
		return n == 1, err
	}, nil
}

// bareRueidis is the same through a client that pipelines all callers.
func bareRueidis(client rueidis.Client) check {
	ctx := context.Background()
	sha := nothing.Hash()
	return func(int) (bool, error) {
		n, err := client.Do(ctx, client.B().Evalsha().Sha1(sha).Numkeys(0).Build()).AsInt64()
		return n == 1, err
	}
}

// exhaust asks until the keys that exhausted goes round have nothing left: as
// often as the window admits.
func exhaust(checks []check) error {
	var wg sync.WaitGroup
	errs := make([]error, len(checks))
	for i, ask := range checks {
		wg.Go(func() {
			for n := range fives * exhaustedKeys {
				admitted, err := ask(n)
				if err == nil && !admitted {
					err = fmt.Errorf("check %d of %d while filling: refused", n, fives*exhaustedKeys)
				}
				if err != nil {
					errs[i] = err
					return
				}
			}
		})
	}
	wg.Wait()
	return first(errs)
}
