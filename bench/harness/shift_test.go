package harness

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// Hollander and Wolfe, table 4.1: permeability of the human chorioamnion.
func TestShiftOfThePublishedExample(t *testing.T) {
	atTerm := []float64{0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46}
	early := []float64{1.15, 0.88, 0.90, 0.74, 1.21}
	s := ShiftOf(atTerm, early, 1.96)
	require.InDelta(t, 0.305, s.Median, 1e-9)
	require.True(t, s.Zero())
	require.InDelta(t, -0.15, s.Low, 0.1)
	require.InDelta(t, 0.76, s.High, 0.1)
}

// The interval holds what it says: it has the true shift in it 99 times in 100,
// whatever outliers there are, and not 0 if that is far away.
func TestTheIntervalOfAShiftHoldsTheTruth(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	noise := func() float64 {
		x := random.ExpFloat64()
		if random.IntN(20) == 0 {
			x *= 100
		}
		return x
	}
	const runs = 1000
	held, zero := 0, 0
	for range runs {
		var xs, ys []float64
		for range 50 {
			xs, ys = append(xs, 1+noise()), append(ys, noise())
		}
		s := ShiftOf(xs, ys, Z99)
		if s.Low <= 1 && 1 <= s.High {
			held++
		}
		if s.Zero() {
			zero++
		}
	}
	require.Greater(t, held, runs*98/100)
	require.Less(t, zero, runs*5/100)
}
