package policies

import (
	"time"

	"authguard/guard"
	"authguard/limiter"
)

// alignedStart is an instant at which all windows of the clock begin, as far as
// there is one, and a day does.
func alignedStart(p guard.Policy) int64 {
	step := day.Microseconds()
	for _, w := range clockWindows(p) {
		if both := step / gcd(step, w) * w; both <= year.Microseconds() {
			step = both
		}
	}
	from := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	return (from/step + 1) * step
}

// clockWindows are the lengths of p's windows of the clock, in microseconds.
func clockWindows(p guard.Policy) []int64 {
	var all []int64
	seen := make(map[time.Duration]bool)
	for _, r := range p.Rules {
		for _, l := range r.Limits {
			switch l.(type) {
			case limiter.FixedWindow, limiter.SlidingWindowCounter:
				if _, w, _ := numbers(l); !seen[w] && r.Effect != guard.Observe {
					seen[w] = true
					all = append(all, w.Microseconds())
				}
			}
		}
	}
	return all
}

// memory is for how long p remembers those of s who come again, streaks apart,
// which are short.
func memory(p guard.Policy, s scenario) time.Duration {
	longest := day
	if s.everyNew() {
		longest = 0
	}
	for _, r := range p.Rules {
		if s.everyNew() && s.level(r.By) == itself {
			continue
		}
		for _, l := range r.Limits {
			if _, w, ok := numbers(l); ok && r.Effect != guard.Observe {
				longest = max(longest, 2*w)
			}
		}
	}
	return longest
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
