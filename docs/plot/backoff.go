package main

import (
	"fmt"
	"math"
	"time"

	"authguard/internal/svg"
	"authguard/limiter"
)

var patience = limiter.Backoff{
	Free: 10, Base: 30 * time.Second, Factor: 2, Max: time.Hour, LockAfter: 80,
	Forget: 7 * 24 * time.Hour, ForgetBeyond: 90 * 24 * time.Hour,
}

// failure is one of a streak.
type failure struct {
	at   time.Duration // since the first
	wait time.Duration // that it brings
	lock bool
}

// streak is a guesser who fails as soon as they may, until the lock.
func streak(law limiter.Backoff) []failure {
	var failures []failure
	for k, at := newKey(law), time.Duration(0); ; {
		k.admits(at, "")
		next, err := k.look(at, limiter.Ask{Cost: 1})
		if err != nil {
			panic(err)
		}
		f := failure{at, next[0].RetryAfter, next[0].Locked}
		if failures = append(failures, f); f.lock {
			return failures
		}
		at += f.wait
	}
}

// backoff is the wait after each failure.
func backoff() *svg.Drawing {
	d := svg.New(900, 480, "Backoff: the wait after each failure",
		"10 free, then 30 s doubling up to 1 h, locked at 80. Somebody guesses again as soon as they may.",
		"The wait is none for nine failures, 30 seconds after the tenth, doubles to one hour by the seventeenth, and stays there until the lock at the eightieth.")
	const left, right, top, bottom = 84, 800, 116, 376
	failures := streak(patience)
	x := func(n int) float64 { return svg.Scale(float64(n), 1, float64(len(failures)), left, right) }
	y := func(wait time.Duration) float64 {
		return svg.Scale(math.Log2(wait.Seconds()), math.Log2(15), math.Log2(3600), bottom-20, top)
	}
	for _, wait := range []time.Duration{30 * time.Second, 2 * time.Minute, 8 * time.Minute, time.Hour} {
		d.Line("grid", left, y(wait), right, y(wait))
		d.Text(left-12, y(wait)+4, "end", "note", short(wait))
	}
	d.Text(left-12, bottom+4, "end", "note", "no wait")
	d.Line("axis", left-6, bottom, right, bottom)
	d.Text(left-60, top-22, "start", "note", "wait (logarithmic)")
	for i, f := range failures {
		switch n := i + 1; {
		case f.lock:
			d.Line("mark", x(n), top-14, x(n), bottom)
			d.Cross(x(n), y(patience.Max))
			d.Text(x(n)+10, y(patience.Max)+5, "start", "b", "locked")
			d.Text(x(n)+10, y(patience.Max)+23, "start", "note", "until recovery")
		case f.wait == 0:
			d.Dot("yes", x(n), bottom, 3)
		default:
			d.Dot("yes", x(n), y(f.wait), 3)
		}
	}
	d.Text(x(17), y(4*time.Minute)+5, "start", "", "waits: "+waits(failures))
	for _, n := range []int{1, 10, 17, 40, 60, 80} {
		d.Line("axis", x(n), bottom+6, x(n), bottom+12)
		d.Text(x(n), bottom+28, "middle", "", fmt.Sprint(n))
		d.Text(x(n), bottom+46, "middle", "note", short(failures[n-1].at))
	}
	d.Text(24, 456, "start", "note", "Failures in a row, and how long after the first each can come at the earliest.")
	return d
}

// waits are the first waits that differ.
func waits(failures []failure) string {
	s, last := "", time.Duration(0)
	for _, f := range failures {
		if f.wait != last && !f.lock {
			s += short(f.wait) + ", "
			last = f.wait
		}
	}
	return s + "then the same"
}
