package policies

import (
	"slices"
	"time"
)

// figures are those of a Left: hour, day, 30 days and year from the start, and
// the most in any second, minute and hour.
type figures [7]Figure

var (
	fromStart = [4]time.Duration{time.Hour, day, 30 * day, year}
	anyWindow = [3]time.Duration{time.Second, time.Minute, time.Hour}
)

// result is the best of an attack's tactics, figure by figure.
type result struct {
	figures
	lockedAfter int
	lockedIn    time.Duration
	year        tactic  // the best for the year
	asked       bool    // for a challenge, in any of the tactics
	solved      *result // of a guesser who solves them, if asked
	err         error
}

// better takes over what a did better.
func (res *result) better(a *attack) {
	for i, d := range anyWindow {
		f := a.inAny(d)
		res.figures[len(fromStart)+i] = larger(res.figures[len(fromStart)+i], f)
	}
	if a.start != alignedStart(a.policy) {
		return
	}
	for i, d := range fromStart {
		if a.life < d {
			return
		}
		f := a.until(d)
		if i == len(fromStart)-1 && f.N > res.figures[i].N {
			res.year = a.tactic
		}
		res.figures[i] = larger(res.figures[i], f)
	}
	if n := a.lockedAt; n > 0 && a.pauseAfter == 0 && res.lockedAfter == 0 && !a.manyAccounts {
		res.lockedAfter = n
		res.lockedIn = time.Duration(a.admitted[n-1]-a.start) * time.Microsecond
	}
}

func larger(a, b Figure) Figure {
	if b.N > a.N {
		return b
	}
	return a
}

// into fills in the figures of a row.
func (res *result) into(l *Left) {
	f := &res.figures
	l.Hour, l.Day, l.Days30, l.Year = f[0], f[1], f[2], f[3]
	l.AnySecond, l.AnyMinute, l.AnyHour = f[4], f[5], f[6]
	l.LockedAfter, l.LockedIn = res.lockedAfter, res.lockedIn
	l.PauseAfter, l.Pause = res.year.pauseAfter, res.year.pause
}

// count is the number of attempts that got through less than d after the start.
func (a *attack) count(d time.Duration) int64 {
	n, _ := slices.BinarySearch(a.admitted, a.start+d.Microseconds())
	return int64(n)
}

// until is what gets through in the first d.
func (a *attack) until(d time.Duration) Figure {
	ran := time.Duration(a.ran) * time.Microsecond
	if ran >= d {
		return Figure{N: a.count(d)}
	}
	// What was run goes on like its last whole day, or a shorter unit if it has
	// no two of them: the first is not like the others.
	for _, unit := range []time.Duration{day, time.Hour, time.Minute, time.Second} {
		if whole := ran / unit * unit; whole >= 2*unit {
			last := a.count(whole) - a.count(whole-unit)
			n := float64(a.count(whole)) + float64(last)*float64(d-whole)/float64(unit)
			return Figure{N: roundTo3(n), Estimated: true}
		}
	}
	return Figure{N: int64(len(a.admitted)), Unbounded: true}
}

// inAny is the most that got through in any d.
func (a *attack) inAny(d time.Duration) Figure {
	var most, first int
	for last := range a.admitted {
		for a.admitted[last]-a.admitted[first] >= d.Microseconds() {
			first++
		}
		most = max(most, last-first+1)
	}
	if f := a.until(d); a.ran < d.Microseconds() && f.N >= int64(most) {
		return f
	}
	return Figure{N: int64(most)}
}

func roundTo3(n float64) int64 {
	step := int64(1)
	for n/float64(step) >= 1000 {
		step *= 10
	}
	return int64(n/float64(step)+0.5) * step
}
