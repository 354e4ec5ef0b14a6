package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"authguard/internal/svg"
	"authguard/limiter"
)

// A contestant is a law in a plot that compares laws. Those named together
// answer alike.
type contestant struct {
	name, numbers string
	limit         limiter.Limit
	member        func(n int) string // whom the ask number n touches
}

// contestants are laws with numbers of about ten a minute.
func contestants(member func(n int) string, members string) []contestant {
	const window = time.Minute
	return []contestant{
		{"FixedWindow", "10 per minute", limiter.FixedWindow{Limit: 10, Window: window}, nobody},
		{"SlidingWindow", "10 per minute", limiter.SlidingWindow{Limit: 10, Window: window}, nobody},
		{"SlidingWindowCounter", "10 per minute", limiter.SlidingWindowCounter{Limit: 10, Window: window}, nobody},
		{"TokenBucket, LeakyBucket", "10 at once, 10 per minute", limiter.TokenBucket{Capacity: 10, Refill: 10, Per: window}, nobody},
		{"Backoff", "10 free, then 30 s ×2", limiter.Backoff{
			Free: 10, Base: 30 * time.Second, Factor: 2, Max: time.Hour, LockAfter: 80,
			Forget: 7 * 24 * time.Hour, ForgetBeyond: 90 * 24 * time.Hour}, nobody},
		{"Distinct", "10 per minute, " + members, limiter.Distinct{Limit: 10, Window: window}, member},
	}
}

// lanes draws a row of bars for each contestant: how many were admitted of each
// group of asks. A group has its middle at middles, and tall is the height of a
// lane in units. With outline, a box shows what was asked.
func lanes(d *svg.Drawing, cs []contestant, admitted func(contestant) []int, middles []float64, top, width float64, tall int, outline bool) (bottom float64) {
	const height, gap = 46, 26
	for _, c := range cs {
		base := top + height
		d.Text(24, base-22, "start", "b", c.name)
		d.Text(24, base-4, "start", "note", c.numbers)
		d.Line("axis", middles[0]-width, base, middles[len(middles)-1]+width, base)
		for i, n := range admitted(c) {
			left, h := middles[i]-width/2, svg.Scale(float64(n), 0, float64(tall), 0, height)
			over := base - h
			if outline {
				d.Rect("no", left, base-height, width, height)
				over = base - height
			}
			d.Rect("yes", left, base-h, width, h)
			d.Text(middles[i], over-5, "middle", "", fmt.Sprint(n))
		}
		top = base + gap
	}
	return top - gap
}

func sorted[V any](m map[time.Duration]V) []time.Duration {
	return slices.Sorted(maps.Keys(m))
}
