package main

import (
	"fmt"
	"time"

	"authguard/internal/svg"
)

const (
	bursts     = 12
	burstSize  = 6
	firstBurst = 5 * time.Second
	burstEvery = 15 * time.Second
)

// train is a train of bursts through each law.
func train() *svg.Drawing {
	d := svg.New(900, 600, "A train of bursts: asked and admitted",
		fmt.Sprintf("%d asks at one instant every %v: 24 a minute, where the laws mean 10.", burstSize, burstEvery),
		"For each law, twelve bursts of six asks in three minutes and how many of each were admitted.")
	x := func(at time.Duration) float64 { return svg.Scale(at.Seconds(), 0, 180, 232, 864) }
	var middles []float64
	for i := range bursts {
		middles = append(middles, x(burstAt(i)))
	}
	for m := range 4 {
		at := x(time.Duration(m) * time.Minute)
		d.Line("mark", at, 84, at, 546)
		d.Text(at, 566, "middle", "note", fmt.Sprintf("%d min", m))
	}
	lanes(d, contestants(func(n int) string { return fmt.Sprint(n % 12) }, "12 members"), trainAdmitted, middles, 104, 26, burstSize, true)
	d.Text(24, 586, "start", "note", "Box: asked. Filled, and the number: admitted. Dashed: minutes of the clock.")
	return d
}

func burstAt(i int) time.Duration { return firstBurst + time.Duration(i)*burstEvery }

// trainAdmitted is how many of each burst c admits.
func trainAdmitted(c contestant) []int {
	k, admitted := newKey(c.limit), make([]int, bursts)
	for n := range bursts * burstSize {
		if i := n / burstSize; k.admits(burstAt(i), c.member(n)) {
			admitted[i]++
		}
	}
	return admitted
}
