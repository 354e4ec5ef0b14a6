package harness

import (
	"math"
	"slices"
)

// A Shift is by how much one sample lies above another.
type Shift struct {
	Median    float64 // of all differences between one of the first and one of the second
	Low, High float64 // a confidence interval of it
}

// Zero reports that the interval has 0 in it: the samples do not tell the two apart.
func (s Shift) Zero() bool { return s.Low <= 0 && s.High >= 0 }

// Z99 is the normal quantile of an interval that misses once in a hundred times.
const Z99 = 2.5758

// ShiftOf is the estimator of Hodges and Lehmann with the distribution-free
// interval that belongs to the test of Mann and Whitney, for samples of twenty and
// more, where its quantile is that of a normal distribution: Hollander, Wolfe and
// Chicken, Nonparametric Statistical Methods, 3rd edition, 4.2 and 4.3. A few samples
// that a busy machine has delayed by any amount move it by little.
func ShiftOf(xs, ys []float64, z float64) Shift {
	d := make([]float64, 0, len(xs)*len(ys))
	for _, x := range xs {
		for _, y := range ys {
			d = append(d, x-y)
		}
	}
	if len(d) == 0 {
		return Shift{Low: math.Inf(-1), High: math.Inf(1)}
	}
	slices.Sort(d)
	n, m := float64(len(xs)), float64(len(ys))
	c := int(n*m/2 - z*math.Sqrt(n*m*(n+m+1)/12)) // as many differences are left out on each side
	c = max(1, c)
	return Shift{Median: Median(d), Low: d[c-1], High: d[len(d)-c]}
}
