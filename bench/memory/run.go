package memory

import (
	"errors"
	"fmt"

	"authguard/bench/harness"
)

const about = "All contenders admit a number per hour, and none of it comes back meanwhile. Ours keeps all keys within a bound of bytes and " +
	"sweeps what is whole again; the floor is a flat table that only finds a key under its lock and counts."

// Run measures the family.
func Run(s *harness.Session) error {
	s.Section("In memory", about)
	f := family{Session: s, asks: 500_000, keys: 1_000_000, logins: 100_000}
	if s.Quick {
		f.asks, f.keys, f.logins = 20_000, 50_000, 5_000
	}
	for _, part := range []func() error{f.hotAdmitted, f.hotRefused, f.million, f.batch, f.login} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

type family struct {
	*harness.Session
	asks   int // of a run, by each goroutine
	keys   int // of the many
	logins int // of a run
}

var inLoop = []harness.Metric{harness.Nanoseconds, harness.CPUTime, harness.Bytes, harness.Allocations}

const hotKey = "ag:{0123456789abcdef}01234567"

// name is a key as package guard makes them.
func name(i int) string { return fmt.Sprintf("ag:{%016x}01234567", i) }

func names(n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = name(i)
	}
	return all
}

// hotAdmitted asks one key for all that its limit admits.
func (f *family) hotAdmitted() error {
	e := harness.Experiment{
		Name:    "One key, admitted",
		About:   fmt.Sprintf("A limit of %d, all of it, and after that the next must be refused.", f.asks),
		Metrics: inLoop,
		Ratios:  []harness.Ratio{{Metric: harness.CPUTime, Per: sethvargo}},
		Goals: []harness.Goal{
			{Of: oursBucket, Metric: harness.CPUTime, Per: sethvargo, AtMost: 0.75},
			{Of: oursBucket, Metric: harness.Allocations, AtMost: 0.01},
		},
	}
	for _, m := range append(ourLaws, peers...) {
		e.Contenders = append(e.Contenders, f.hot(m, f.asks, f.asks))
	}
	_, err := f.Measure(e)
	return err
}

// hotRefused asks one key for much more than its limit admits.
func (f *family) hotRefused() error {
	const limit = 5
	e := harness.Experiment{
		Name:    "One key, refused",
		About:   fmt.Sprintf("A limit of %d, asked %d times: exactly %d are admitted.", limit, f.asks, limit),
		Metrics: inLoop,
		Ratios:  []harness.Ratio{{Metric: harness.CPUTime, Per: sethvargo}},
		Goals:   []harness.Goal{{Of: oursBucket, Metric: harness.CPUTime, Per: sethvargo, AtMost: 0.75}},
	}
	for _, m := range append(append([]maker{ours(oursWindow, window)}, ourLaws...), peers...) {
		e.Contenders = append(e.Contenders, f.hot(m, limit, limit))
	}
	_, err := f.Measure(e)
	return err
}

func (f *family) hot(m maker, limit, admitted int) harness.Contender {
	return harness.Contender{Name: m.name, Run: func() (harness.Sample, error) {
		takes, closing, err := m.make(limit, 1)
		if err != nil {
			return nil, err
		}
		defer closing()
		ask := takes()
		sample, err := harness.Timed(1, f.asks, admitted, func(int, int) (bool, error) { return ask(hotKey) })
		if err != nil {
			return nil, err
		}
		if more, err := ask(hotKey); err != nil || more {
			return nil, errors.Join(err, fmt.Errorf("admitted more than %d", limit))
		}
		return sample, nil
	}}
}
