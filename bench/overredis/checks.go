package overredis

import (
	"fmt"

	"authguard/bench/harness"
	"authguard/limiter"
)

var metrics = []harness.Metric{Rate, Latency, Tail, ServerCPU, ClientCPU}

// Names of rows that goals and ratios speak of.
const (
	coalescing    = "**ours**"
	without       = "**ours**, without coalescing"
	threeCalls    = "redis_rate, three calls"
	oneCall       = "redis_rate"
	autoPipeline  = " over AutoPipeline"
	bareEvalsha   = "floor: bare EVALSHA"
	rueidisFloor  = "floor: bare EVALSHA, rueidis"
	stopsAtFirst  = "redis_rate, one call, which refuses"
	onePipeline   = "redis_rate's script three times in one pipeline"
	kindsOfLimits = "an exact window of 5 in 900 s, a sliding window counter and a token bucket"
)

func (f *family) threeLimits() error {
	for _, n := range f.callers {
		e := harness.Experiment{
			Name: fmt.Sprintf("Three limits on three keys, admitted, %s", plural(n)),
			About: "Three limits: " + kindsOfLimits + ". Ours decides them in one step, all or none; redis_rate is asked for its GCRA three times. " +
				"Keys are fresh after every five checks.",
			Metrics: metrics,
			Contenders: []harness.Contender{
				f.ours(coalescing, n, fresh, three, together),
				f.ours(without, n, fresh, three, apart),
				f.redisRate(threeCalls, n, fresh, rates),
				f.autoPipelined(threeCalls+autoPipeline, n, fresh, rates),
				f.pipelined(onePipeline, n, fresh, rates),
				f.bare(bareEvalsha, n),
				f.rueidis(rueidisFloor, n),
			},
			Ratios: []harness.Ratio{{Metric: Rate, Per: threeCalls}, {Metric: ServerCPU, Per: threeCalls}},
		}
		switch n {
		case 1:
			e.Ratios = []harness.Ratio{{Metric: Latency, Per: bareEvalsha}, {Metric: Latency, Per: threeCalls}}
			e.Goals = []harness.Goal{{Of: coalescing, Metric: Latency, Per: bareEvalsha, AtMost: 1.3}}
		case 64:
			e.Goals = []harness.Goal{
				{Of: without, Metric: Rate, Per: threeCalls, AtLeast: 2.2},
				{Of: without, Metric: ServerCPU, Per: threeCalls, AtMost: 0.5},
				{Of: coalescing, Metric: Rate, Per: threeCalls, AtLeast: 5},
				{Of: coalescing, Metric: ServerCPU, Per: threeCalls, AtMost: 0.25},
			}
		case 256:
			e.Goals = []harness.Goal{
				{Of: coalescing, Metric: Rate, Per: threeCalls, AtLeast: 6},
				{Of: coalescing, Metric: ServerCPU, Per: threeCalls, AtMost: 0.25},
			}
		}
		if _, err := f.Measure(e); err != nil {
			return err
		}
	}
	return nil
}

func (f *family) oneLimit() error {
	for _, n := range f.callers {
		e := harness.Experiment{
			Name:    fmt.Sprintf("One limit, admitted, %s", plural(n)),
			About:   "A token bucket; redis_rate's GCRA is the same law.",
			Metrics: metrics,
			Contenders: []harness.Contender{
				f.ours(coalescing, n, fresh, []limiter.Limit{bucket}, together),
				f.ours(without, n, fresh, []limiter.Limit{bucket}, apart),
				f.redisRate(oneCall, n, fresh, rates[2:]),
				f.autoPipelined(oneCall+autoPipeline, n, fresh, rates[2:]),
			},
			Ratios: []harness.Ratio{{Metric: Rate, Per: oneCall}, {Metric: ServerCPU, Per: oneCall}},
		}
		if least := map[int]float64{64: 3.7, 256: 5.5}[n]; least > 0 {
			e.Goals = []harness.Goal{{Of: coalescing, Metric: Rate, Per: oneCall, AtLeast: least}}
		}
		if _, err := f.Measure(e); err != nil {
			return err
		}
	}
	return nil
}

func (f *family) refused() error {
	for _, n := range f.callers {
		e := harness.Experiment{
			Name: fmt.Sprintf("Three limits on three keys, refused, %s", plural(n)),
			About: "As above, of keys whose window is full. An application that asks redis_rate three times finds out with the last call, " +
				"and has been charged for the first two; one that happens to ask for the full limit first may stop there.",
			Metrics: metrics,
			Contenders: []harness.Contender{
				f.ours(coalescing, n, exhausted, three, together),
				f.ours(without, n, exhausted, three, apart),
				f.redisRate(threeCalls, n, exhausted, rates),
				f.redisRate(stopsAtFirst, n, exhausted, rates[:1]),
			},
			Ratios: []harness.Ratio{{Metric: Rate, Per: threeCalls}, {Metric: ServerCPU, Per: threeCalls}},
		}
		if n == 64 {
			e.Goals = []harness.Goal{{Of: coalescing, Metric: Rate, Per: threeCalls, AtLeast: 9}}
		}
		if _, err := f.Measure(e); err != nil {
			return err
		}
	}
	return nil
}

func plural(callers int) string {
	if callers == 1 {
		return "1 caller"
	}
	return fmt.Sprintf("%d callers", callers)
}
