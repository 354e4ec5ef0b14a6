package harness

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACurveIsATableAndAPlot(t *testing.T) {
	s := Session{Rounds: 2, Out: io.Discard}
	round := 0.0
	c := Curve{Name: "Growth", About: "About.", File: "g.svg", X: "keys", Y: "ns", At: []int{1, 1000, 1_000_000}, Lines: []Line{
		{Name: "a", Run: func(x int) (float64, error) {
			if x == 1 {
				round++
			}
			return float64(x) * round, nil
		}},
		{Name: "b & c", Most: 1000, Run: func(int) (float64, error) { return 5, nil }},
	}}
	require.NoError(t, s.Draw(c))
	require.Contains(t, s.Page(), "| keys      |")
	require.Contains(t, s.Page(), "| 1,000     |             1,500 (1,000–2,000) |     5 |")
	require.Contains(t, s.Page(), "| 1,000,000 | 1,500,000 (1,000,000–2,000,000) |     – |")
	require.Contains(t, s.Page(), "![Growth](img/bench/g.svg)")

	plot := string(s.plots["g.svg"])
	require.NoError(t, xml.Unmarshal([]byte(plot), new(struct{})))
	require.Equal(t, 5, strings.Count(plot, "<circle"), "three points and two")
	require.Contains(t, plot, "b &amp; c")
	require.NotContains(t, plot, "NaN")
	require.NotContains(t, plot, "Inf")
}

func TestACurveEndsWithAWrongAnswer(t *testing.T) {
	s := Session{Rounds: 1, Out: io.Discard}
	wrong := errors.New("wrong")
	err := s.Draw(Curve{Name: "Growth", At: []int{1, 2}, Lines: []Line{{Name: "a", Run: func(x int) (float64, error) {
		if x == 2 {
			return 0, wrong
		}
		return 1, nil
	}}}})
	require.ErrorIs(t, err, wrong)
	require.EqualError(t, err, "Growth: a at 2: wrong")
}

func TestAnAxisHasPowersOfTen(t *testing.T) {
	low, high := bounds([][][]float64{{{30}, {}}, {{2_000, 2_000}}})
	require.Equal(t, []float64{10, 10_000}, []float64{low, high})
	low, high = bounds([][][]float64{{{10}}})
	require.Equal(t, []float64{10, 100}, []float64{low, high})
	low, high = bounds(nil)
	require.Equal(t, []float64{1, 10}, []float64{low, high})
	require.Equal(t, []string{"5", "10k", "1M"}, []string{short(5), short(10_000), short(1_000_000)})
}
