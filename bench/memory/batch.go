package memory

import (
	"context"
	"errors"
	"fmt"

	"authguard/bench/harness"
	"authguard/limiter"
)

// batch asks three limits on three keys: ours in one step, peers one after the
// other.
func (f *family) batch() error {
	oneTake, oursThree := sethvargo+", one Take", "**ours**: three token buckets"
	e := harness.Experiment{
		Name: "Three limits on three keys, admitted",
		About: "Ours decides in one step, all or none. Peers are asked three times, and are charged for the first when the last refuses. " +
			"The keys are hot.",
		Metrics: inLoop,
		Ratios:  []harness.Ratio{{Metric: harness.CPUTime, Per: oneTake}},
		Goals:   []harness.Goal{{Of: oursThree, Metric: harness.CPUTime, Per: oneTake, AtMost: 1.7}},
		Contenders: []harness.Contender{
			f.inOneStep(oursThree, bucket(f.asks), bucket(f.asks), bucket(f.asks)),
			f.inOneStep("**ours**: bucket, fixed window, counter", bucket(f.asks), fixed(f.asks), counter(f.asks)),
		},
	}
	for _, m := range peers {
		if m.name == sethvargo {
			e.Contenders = append(e.Contenders, f.oneByOne(oneTake, m, 1))
		}
	}
	for _, m := range peers {
		e.Contenders = append(e.Contenders, f.oneByOne(m.name+", three", m, 3))
	}
	_, err := f.Measure(e)
	return err
}

func (f *family) inOneStep(row string, limits ...limiter.Limit) harness.Contender {
	return harness.Contender{Name: row, Run: func() (harness.Sample, error) {
		store, ctx := newStore(), context.Background()
		charges := make([]limiter.Charge, len(limits))
		for i, l := range limits {
			charges[i] = limiter.Charge{Key: name(i), Limit: l, Ask: limiter.Ask{Cost: 1}}
		}
		sample, err := harness.Timed(1, f.asks, f.asks, func(int, int) (bool, error) { return store.Take(ctx, charges) })
		if err != nil {
			return nil, err
		}
		if more, err := store.Take(ctx, charges); err != nil || more {
			return nil, errors.Join(err, fmt.Errorf("admitted more than %d", f.asks))
		}
		return sample, nil
	}}
}

func (f *family) oneByOne(row string, m maker, n int) harness.Contender {
	return harness.Contender{Name: row, Run: func() (harness.Sample, error) {
		takes, closing, err := m.make(f.asks, n)
		if err != nil {
			return nil, err
		}
		defer closing()
		ask, keys := takes(), names(n)
		return harness.Timed(1, f.asks, f.asks, func(int, int) (bool, error) {
			admitted := true
			for _, k := range keys {
				ok, err := ask(k)
				if err != nil {
					return false, err
				}
				admitted = admitted && ok
			}
			return admitted, nil
		})
	}}
}
