package harness

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMedian(t *testing.T) {
	require.Zero(t, Median(nil))
	require.Equal(t, 3.0, Median([]float64{9, 1, 3}))
	require.Equal(t, 2.5, Median([]float64{4, 1, 3, 2}))
	require.Equal(t, 4.0, Quantile([]float64{4, 1, 3, 2}, 0.99))
	require.Equal(t, 1.0, Quantile([]float64{4, 1, 3, 2}, 0))
}

func TestNumbersHaveThreeDigits(t *testing.T) {
	for x, want := range map[float64]string{
		0: "0", 0.04567: "0.0457", 1.5: "1.5", 12.345: "12.3", 999.4: "999",
		1000: "1,000", 12345: "12,300", 1234567: "1,230,000", -1234: "-1,230",
	} {
		require.Equal(t, want, Number(x))
	}
}

func TestContendersTakeTurns(t *testing.T) {
	var order strings.Builder
	c := func(name string) Contender {
		return Contender{name, func() (Sample, error) {
			order.WriteString(name)
			return Sample{"x": 1}, nil
		}}
	}
	s := Session{Rounds: 3, Out: io.Discard}
	_, err := s.Measure(Experiment{Name: "e", Metrics: []Metric{"x"}, Contenders: []Contender{c("A"), c("B"), c("C")}})
	require.NoError(t, err)
	require.Equal(t, "ABCABCABC", order.String())

	order.Reset()
	_, err = s.Measure(Experiment{Name: "e", Rounds: 2, Contenders: []Contender{c("A"), c("B")}})
	require.NoError(t, err)
	require.Equal(t, "ABAB", order.String())
}

// A machine that is slow for one whole round changes no ratio.
func TestARatioComparesWithinRounds(t *testing.T) {
	slowness := []float64{1, 10, 2}
	at := map[string]int{}
	c := func(name string, cost float64) Contender {
		return Contender{name, func() (Sample, error) {
			at[name]++
			return Sample{"ns": cost * slowness[at[name]-1]}, nil
		}}
	}
	s := Session{Rounds: 3, Out: io.Discard}
	r, err := s.Measure(Experiment{
		Name: "e", Metrics: []Metric{"ns"}, Contenders: []Contender{c("ours", 30), c("theirs", 60)},
		Ratios: []Ratio{{"ns", "theirs"}},
		Goals: []Goal{
			{Of: "ours", Metric: "ns", Per: "theirs", AtMost: 0.5},
			{Of: "ours", Metric: "ns", Per: "theirs", AtLeast: 0.6},
			{Of: "ours", Metric: "ns", AtMost: 60},
		},
	})
	require.NoError(t, err)
	ratio, ok := r.ratio("ours", "ns", "theirs")
	require.True(t, ok)
	require.Equal(t, 0.5, ratio)
	met, missed := s.Goals()
	require.Equal(t, []int{2, 1}, []int{met, missed})
	require.Contains(t, s.Page(), "| ours   |  60 (30–300) |")
	require.Contains(t, s.Page(), "| at least 0.6 × theirs |      0.5 | **missed** |")
}

// What was not measured meets no goal, and is no ratio.
func TestAMissingFigureMeetsNoGoal(t *testing.T) {
	s := Session{Rounds: 1, Out: io.Discard}
	e := Experiment{Name: "e", Metrics: []Metric{"ns"},
		Contenders: []Contender{{"a", func() (Sample, error) { return Sample{}, nil }}, {"b", func() (Sample, error) { return Sample{"ns": 0}, nil }}},
		Ratios:     []Ratio{{"ns", "b"}},
		Goals:      []Goal{{Of: "a", Metric: "ns", AtMost: 5}, {Of: "b", Metric: "ns", Per: "b", AtMost: 5}}}
	_, err := s.Measure(e)
	require.NoError(t, err)
	met, missed := s.Goals()
	require.Equal(t, []int{0, 2}, []int{met, missed})
}

func TestAWrongAnswerEndsTheSession(t *testing.T) {
	s := Session{Rounds: 1, Out: io.Discard}
	_, err := s.Measure(Experiment{Name: "e", Contenders: []Contender{{"ours", func() (Sample, error) {
		return Timed(1, 10, 5, func(_, i int) (bool, error) { return i < 6, nil })
	}}}})
	require.EqualError(t, err, "e: ours: admitted 6 of 10, want 5")
}

func TestTimedCountsInAllGoroutines(t *testing.T) {
	sample, err := Timed(3, 100, 150, func(_, i int) (bool, error) { return i%2 == 0, nil })
	require.NoError(t, err)
	require.Positive(t, sample[string(Nanoseconds)])

	kept := make([][]byte, 1000)
	sample, err = Timed(1, 1000, 1000, func(_, i int) (bool, error) { kept[i] = make([]byte, 64); return true, nil })
	require.NoError(t, err)
	require.InDelta(t, 1, sample[string(Allocations)], 0.5)
	require.InDelta(t, 64, sample[string(Bytes)], 32)

	broken := errors.New("broken")
	_, err = Timed(2, 10, 0, func(int, int) (bool, error) { return false, broken })
	require.ErrorIs(t, err, broken, "an error is no refusal")
}

func TestAnExperimentNamesOnlyWhatItHas(t *testing.T) {
	run := func() (Sample, error) { return Sample{}, nil }
	one := []Contender{{"a", run}}
	for want, e := range map[string]Experiment{
		"two contenders":  {Contenders: []Contender{{"a", run}, {"a", run}}},
		"for a ratio":     {Contenders: one, Metrics: []Metric{"ns"}, Ratios: []Ratio{{"ns", "b"}}},
		"for a goal":      {Contenders: one, Metrics: []Metric{"ns"}, Goals: []Goal{{Of: "a", Metric: "B", AtMost: 1}}},
		"one of AtMost":   {Contenders: one, Metrics: []Metric{"ns"}, Goals: []Goal{{Of: "a", Metric: "ns"}}},
		"AtMost and AtLe": {Contenders: one, Metrics: []Metric{"ns"}, Goals: []Goal{{Of: "a", Metric: "ns", AtMost: 1, AtLeast: 1}}},
	} {
		s := Session{Out: io.Discard}
		_, err := s.Measure(e)
		require.ErrorContains(t, err, want)
	}
}

func TestThePageIsSavedWithItsPlots(t *testing.T) {
	docs := t.TempDir()
	s := Session{Out: io.Discard}
	s.Section("Growth", "How it grows.")
	s.Plot("a.svg", "a curve", []byte("<svg/>"))
	require.NoError(t, s.Save(docs))
	page, err := os.ReadFile(filepath.Join(docs, "benchmarks.md"))
	require.NoError(t, err)
	require.Equal(t, "## Growth\n\nHow it grows.\n\n![a curve](img/bench/a.svg)\n\n", string(page))
	plot, err := os.ReadFile(filepath.Join(docs, "img/bench/a.svg"))
	require.NoError(t, err)
	require.Equal(t, "<svg/>", string(plot))
}
