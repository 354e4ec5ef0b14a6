package policies

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"authguard/limiter"
)

const day = 24 * time.Hour

// parseWindow reads a duration that a limit can have.
func parseWindow(s string) (time.Duration, error) {
	d, err := parseDuration(s)
	if err != nil {
		return 0, err
	}
	if d < limiter.MinWindow || d > limiter.MaxWindow {
		return 0, fmt.Errorf("%s is out of range, want %v to %dd", short(s), limiter.MinWindow, limiter.MaxWindow/day)
	}
	return d, nil
}

// parseDuration reads what time.ParseDuration reads, with days before it: 90s,
// 1h30m, 7d, 1d12h. A bare number is an error, 0 included: whoever writes 900
// may mean seconds or milliseconds.
func parseDuration(s string) (time.Duration, error) {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, fmt.Errorf("%s has no unit, write %ss", short(s), short(s))
	}
	var days time.Duration
	rest := s
	if before, after, ok := strings.Cut(s, "d"); ok {
		n, err := parseCount(before)
		if err != nil {
			return 0, badDuration(s)
		}
		days, rest = time.Duration(min(n, 100*365))*day, after // more would overflow, and is out of range anyway
	}
	if rest == "" && days != 0 {
		return days, nil
	}
	// After days, a sign would make 2d-1h of it and a bare 0 has no unit.
	d, err := time.ParseDuration(rest)
	if err != nil || days != 0 && (strings.ContainsAny(rest, "+-") || rest == "0") {
		return 0, badDuration(s)
	}
	return days + d, nil
}

func badDuration(s string) error {
	return fmt.Errorf("%q is not a duration, want numbers with units (ms, s, m, h, d), for instance 15m", short(s))
}
