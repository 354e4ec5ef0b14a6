package main

import (
	"fmt"
	"time"

	"authguard/internal/svg"
)

const (
	saturatedFrom = 100 * time.Second // not where minutes of the clock begin
	saturatedFor  = 8                 // minutes
)

// saturation is a client that never stops asking.
func saturation() *svg.Drawing {
	d := svg.New(900, 600, "Saturation: admitted in each minute",
		"A client asks ten times a second for eight minutes, from 40 s after a minute of the clock began.",
		"For each law, how many of 600 asks in each of eight minutes were admitted.")
	var middles []float64
	for m := range saturatedFor {
		x := 280 + 76*float64(m)
		middles = append(middles, x)
		d.Text(x, 560, "middle", "note", fmt.Sprintf("minute %d", m+1))
	}
	lanes(d, contestants(func(n int) string { return fmt.Sprint(n) }, "all new"), saturationAdmitted, middles, 104, 50, 20, false)
	d.Text(24, 586, "start", "note", "Each number is of 600 asks. Minutes count from the first ask.")
	return d
}

// saturationAdmitted is how many c admits in each minute.
func saturationAdmitted(c contestant) []int {
	const step = 100 * time.Millisecond
	admitted := make([]int, saturatedFor)
	for _, at := range hammer(c.limit, saturatedFrom, saturatedFrom+saturatedFor*time.Minute-step, step, c.member) {
		admitted[(at-saturatedFrom)/time.Minute]++
	}
	return admitted
}
