package harness

import "slices"

// Sample is what one run of a contender measured, by the names of metrics.
type Sample map[string]float64

// Median is the middle of xs, or the mean of the two in the middle. Of nothing it
// is 0.
func Median(xs []float64) float64 {
	n := len(xs)
	if n == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(xs))
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// Quantile is the least x of xs that is not exceeded by a share q of them.
func Quantile(xs []float64, q float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(xs))
	i := int(q * float64(len(sorted)))
	return sorted[min(i, len(sorted)-1)]
}

// ratios divides pairwise; a pair over 0 is left out.
func ratios(xs, ys []float64) []float64 {
	var rs []float64
	for i := range min(len(xs), len(ys)) {
		if ys[i] != 0 {
			rs = append(rs, xs[i]/ys[i])
		}
	}
	return rs
}
