package memory

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"authguard/bench/harness"
	"authguard/limiter"
)

// Growth draws how a check in memory grows.
func Growth(s *harness.Session) error {
	f := family{Session: s, asks: 200_000, keys: 10_000_000}
	if s.Quick {
		f.asks, f.keys = 5_000, 100_000
	}
	for _, part := range []func() error{f.byKeys, f.byLimits, f.byWindow} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// byKeys asks random keys of so many.
func (f *family) byKeys() error {
	line := func(m maker, most int) harness.Line {
		return harness.Line{Name: m.name, Most: most, Run: func(keys int) (float64, error) { return f.randomKeys(m, keys) }}
	}
	c := harness.Curve{
		Name: "Keys in memory", File: "keys.svg", X: "keys", Y: "CPU ns a check",
		About: "Random keys, admitted, by one goroutine; the laws are a token bucket and an exact window of 100. sethvargo's limiter and the floor stand beside.",
		At:    upTo(f.keys, 1_000, 10_000, 100_000, 1_000_000, 10_000_000),
		Lines: []harness.Line{line(ours("token bucket", bucket), 0), line(ours("exact window", window), 1_000_000)},
	}
	for _, m := range peers {
		switch m.name {
		case sethvargo, "floor: flat table, with the clock":
			c.Lines = append(c.Lines, line(m, 1_000_000))
		}
	}
	return f.Draw(c)
}

func (f *family) randomKeys(m maker, keys int) (float64, error) {
	takes, closing, err := m.make(100, keys)
	if err != nil {
		return 0, err
	}
	defer closing()
	ask := takes()
	for i := range keys {
		if ok, err := ask(name(i)); err != nil || !ok {
			return 0, fmt.Errorf("key %d of %d: admitted is %v, error is %v", i, keys, ok, err)
		}
	}
	// As many as a limit of 100 surely admits, and no more names than are asked.
	asks := min(f.asks, 20*keys)
	r := rand.New(rand.NewPCG(1, 2))
	random := make([]string, asks)
	for i := range random {
		random[i] = name(r.IntN(keys))
	}
	sample, err := harness.Timed(1, asks, asks, func(_, i int) (bool, error) { return ask(random[i]) })
	return sample[string(harness.CPUTime)], err
}

// byLimits asks so many limits at once.
func (f *family) byLimits() error {
	at := func(law func(int) limiter.Limit) func(int) (float64, error) {
		return func(n int) (float64, error) {
			limits := make([]limiter.Limit, n)
			for i := range limits {
				limits[i] = law(f.asks)
			}
			sample, err := f.inOneStep("", limits...).Run()
			return sample[string(harness.CPUTime)], err
		}
	}
	c := harness.Curve{
		Name: "Limits of a check, in memory", File: "limits-memory.svg", X: "limits", Y: "CPU ns a check",
		About: "Hot keys, admitted: token buckets and sliding window counters, all in one step; sethvargo's limiter one after the other.",
		At:    []int{1, 2, 3, 4, 6, 8, 12},
		Lines: []harness.Line{{Name: "token bucket", Run: at(bucket)}, {Name: "sliding window counter", Run: at(counter)}},
	}
	for _, m := range peers {
		if m.name == sethvargo {
			c.Lines = append(c.Lines, harness.Line{Name: m.name, Run: func(n int) (float64, error) {
				sample, err := f.oneByOne("", m, n).Run()
				return sample[string(harness.CPUTime)], err
			}})
		}
	}
	return f.Draw(c)
}

// byWindow fills exact windows of so many, and has full ones refuse.
func (f *family) byWindow() error {
	run := func(limit int, keys int, admitted int) (float64, error) {
		store, ctx := newStore(), context.Background()
		charges := []limiter.Charge{{Limit: limiter.SlidingWindow{Limit: int64(limit), Window: time.Hour}, Ask: limiter.Ask{Cost: 1}}}
		all := names(keys)
		sample, err := harness.Timed(1, f.asks, admitted, func(_, i int) (bool, error) {
			charges[0].Key = all[i%keys]
			return store.Take(ctx, charges)
		})
		return sample[string(harness.CPUTime)], err
	}
	return f.Draw(harness.Curve{
		Name: "An exact window's limit, in memory", File: "window-memory.svg", X: "limit", Y: "CPU ns a check",
		About: "The law SlidingWindow, whose state is eight bytes an admission: filling keys from empty to full, and being refused by one that is full.",
		At:    []int{5, 10, 30, 100, 300, 1000},
		Lines: []harness.Line{
			{Name: "filling", Run: func(limit int) (float64, error) { return run(limit, f.asks/limit+1, f.asks) }},
			{Name: "refused", Run: func(limit int) (float64, error) { return run(limit, 1, limit) }},
		},
	})
}

// upTo are those of xs that are not beyond most.
func upTo(most int, xs ...int) []int {
	for i, x := range xs {
		if x > most {
			return xs[:i]
		}
	}
	return xs
}
