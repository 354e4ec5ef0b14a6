package main

import (
	"fmt"
	"slices"
	"time"

	"authguard/internal/svg"
	"authguard/limiter"
)

// arrivals at the queue: a long burst, two stragglers, a short burst.
var arrivals = slices.Concat(
	every(250*time.Millisecond, 0, 9), every(time.Second, 9*time.Second, 1), every(time.Second, 10500*time.Millisecond, 1),
	every(250*time.Millisecond, 12*time.Second, 4))

func every(step, first time.Duration, n int) (instants []time.Duration) {
	for i := range n {
		instants = append(instants, first+time.Duration(i)*step)
	}
	return instants
}

// queue is a LeakyBucket whose admissions sleep their Delay.
func queue() *svg.Drawing {
	law := limiter.LeakyBucket{Capacity: 5, Leak: 1, Per: time.Second}
	d := svg.New(900, 330, "LeakyBucket as a queue: arrival and departure",
		"Queue of 5, one leaves per second. Each that is admitted waits the Delay that it is told, then goes on.",
		"Bursts of arrivals above, connected with evenly spaced departures below; what finds the queue full is denied at once.")
	const above, below = 130, 240
	x := func(at time.Duration) float64 { return svg.Scale(at.Seconds(), 0, 16, 130, 860) }
	d.Text(24, above+4, "start", "b", "arrives")
	d.Text(24, below+4, "start", "b", "goes on")
	d.Line("axis", x(0)-10, above, x(16*time.Second)+10, above)
	d.Line("axis", x(0)-10, below, x(16*time.Second)+10, below)
	full := []time.Duration{}
	for _, p := range pass(law, arrivals) {
		if !p.admitted {
			d.Cross(x(p.arrival), above-12)
			full = append(full, p.arrival)
			continue
		}
		d.Line("link", x(p.arrival), above, x(p.departure), below)
		d.Dot("yes", x(p.arrival), above, 3.5)
		d.Dot("yes", x(p.departure), below, 5)
	}
	d.Text(x(full[len(full)-1])+14, above-8, "start", "", fmt.Sprintf("queue full: %d denied at once", len(full)))
	for s := 0; s <= 16; s += 2 {
		at := x(time.Duration(s) * time.Second)
		d.Line("axis", at, below+10, at, below+15)
		d.Text(at, below+32, "middle", "note", fmt.Sprintf("%d s", s))
	}
	d.Text(24, 310, "start", "note", "Slanted: waiting in the queue. Upright: no wait. However bursty the arrivals, departures are at least a second apart.")
	return d
}

// passage is one ask's way through the queue.
type passage struct {
	arrival, departure time.Duration
	admitted           bool
}

func pass(law limiter.LeakyBucket, arrivals []time.Duration) []passage {
	k, passages := newKey(law), []passage(nil)
	for _, at := range arrivals {
		admitted, said, err := k.take(at, limiter.Ask{Cost: 1})
		if err != nil {
			panic(err)
		}
		passages = append(passages, passage{at, at + said[0].Delay, admitted})
	}
	return passages
}
