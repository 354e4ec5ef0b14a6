package main

import (
	"fmt"
	"slices"
	"time"

	"authguard/internal/svg"
	"authguard/limiter"
)

// boundary is a client that asks ten times a second from 3 s before the end of
// a window of the clock, seen through a window that slides.
func boundary() *svg.Drawing {
	const (
		window = time.Minute
		edge   = 2 * window // the boundary
		first  = edge - 3*time.Second
		last   = edge + 70*time.Second
	)
	d := svg.New(900, 584, "Around a boundary: how many of the last 60 s were admitted",
		"Limit 10 per minute. A client asks ten times a second, from 3 s before a minute of the clock ends.",
		"Four curves of the number admitted in the last 60 seconds. FixedWindow jumps to 20 at the boundary, SlidingWindow stays at 10, "+
			"SlidingWindowCounter and TokenBucket climb slowly to nearly 20 in the minute after it.")
	for i, p := range []struct {
		name  string
		limit limiter.Limit
	}{
		{"FixedWindow", limiter.FixedWindow{Limit: 10, Window: window}},
		{"SlidingWindow", limiter.SlidingWindow{Limit: 10, Window: window}},
		{"SlidingWindowCounter", limiter.SlidingWindowCounter{Limit: 10, Window: window}},
		{"TokenBucket, 10 at once", limiter.TokenBucket{Capacity: 10, Refill: 10, Per: window}},
	} {
		var (
			left   = 64 + 430*float64(i%2)
			right  = left + 370
			top    = 126 + 236*float64(i/2)
			bottom = top + 140
			x      = func(at time.Duration) float64 {
				return svg.Scale((at - edge).Seconds(), -10, last.Seconds()-edge.Seconds(), left, right)
			}
			y = func(n int) float64 { return svg.Scale(float64(n), 0, 20, bottom, top) }
		)
		admitted := hammer(p.limit, first, last, 100*time.Millisecond, nobody)
		d.Text(left, top-30, "start", "b", p.name)
		d.Text(left, top-13, "start", "", fmt.Sprintf("most in any 60 s: %d, in any 10 s: %d", most(admitted, window), most(admitted, 10*time.Second)))
		for n := 0; n <= 20; n += 10 {
			d.Line("grid", left, y(n), right, y(n))
			d.Text(left-8, y(n)+4, "end", "note", fmt.Sprint(n))
		}
		d.Line("mark", x(edge), top, x(edge), bottom)
		d.Steps("curve", lastWindow(admitted, window, last, x, y))
		for _, at := range admitted {
			d.Line("axis", x(at), bottom+2, x(at), bottom+8)
		}
		for _, s := range []int{0, 20, 40, 60} {
			d.Text(x(edge+time.Duration(s)*time.Second), bottom+24, "middle", "note", map[bool]string{true: "boundary", false: fmt.Sprintf("+%d s", s)}[s == 0])
		}
	}
	d.Text(24, 562, "start", "note", "The strokes below each curve are the admissions. The dashed line is where a minute of the clock ends.")
	return d
}

func nobody(int) string { return "" }

// most is the largest number of instants in any span of window.
func most(instants []time.Duration, window time.Duration) int {
	best := 0
	for i, at := range instants {
		first := slices.IndexFunc(instants, func(t time.Duration) bool { return t > at-window })
		best = max(best, i+1-first)
	}
	return best
}

// lastWindow is the curve of how many instants lie in the window that ends now.
func lastWindow(instants []time.Duration, window, last time.Duration, x func(time.Duration) float64, y func(int) float64) [][2]float64 {
	changes := map[time.Duration]int{last: 0}
	for _, at := range instants {
		changes[at]++
		changes[at+window]--
	}
	n, curve := 0, [][2]float64{{x(instants[0]), y(0)}}
	for _, at := range sorted(changes) {
		if n += changes[at]; at <= last {
			curve = append(curve, [2]float64{x(at), y(n)})
		}
	}
	return curve
}
