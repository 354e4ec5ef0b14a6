package policies

import (
	"time"

	"authguard/limiter"
	"go.yaml.in/yaml/v3"
)

const (
	wantBackoff = "free, base, max, lock, factor, forget or forget_beyond"

	maxFactor = 1000      // of limiter.Backoff
	maxForget = 366 * day // of limiter.Backoff
)

var backoffKeys = []string{"free", "base", "max", "lock", "factor", "forget", "forget_beyond"}

// backoff reads the map of numbers of a limiter.Backoff.
func (r *reader) backoff(n *yaml.Node, where string) limiter.Backoff {
	where += ": backoff"
	before := len(r.list)
	l := limiter.Backoff{Factor: 2, Forget: 7 * day, ForgetBeyond: 90 * day}
	seen := make(map[string]*yaml.Node)
	r.entries(n, where, "a map of "+wantBackoff, func(key, n *yaml.Node) {
		if seen[key.Value] = n; r.refused[n] {
			return
		}
		switch key.Value {
		case "free":
			l.Free = r.whole(n, where, "free")
		case "base":
			l.Base = r.duration(n, where, "base", limiter.MaxWindow)
		case "max":
			l.Max = r.duration(n, where, "max", limiter.MaxWindow)
		case "lock":
			l.LockAfter = r.whole(n, where, "lock")
		case "factor":
			if l.Factor = r.whole(n, where, "factor"); l.Factor > maxFactor {
				r.at(n, "%s: factor: %d is out of range, want 1 to %d", where, l.Factor, maxFactor)
			}
		case "forget":
			l.Forget = r.duration(n, where, "forget", maxForget)
		case "forget_beyond":
			l.ForgetBeyond = r.duration(n, where, "forget_beyond", maxForget)
		default:
			r.unknown(key, where, backoffKeys, wantBackoff)
		}
	})
	for _, key := range []string{"free", "base", "max"} {
		if seen[key] == nil && len(r.list) == before {
			r.at(n, "%s has no %s, want for instance {free: 10, base: 30s, max: 1h, lock: 80}", where, key)
		}
	}
	if len(r.list) == before {
		r.backoffFits(n, where, l, seen)
	}
	return l
}

// backoffFits notes numbers that are in range and do not fit one another.
func (r *reader) backoffFits(n *yaml.Node, where string, l limiter.Backoff, seen map[string]*yaml.Node) {
	life := n // where the life of a streak is written, if anywhere
	for _, key := range []string{"forget", "forget_beyond"} {
		if seen[key] != nil {
			life = seen[key]
		}
	}
	switch err := l.Validate(); {
	case l.Base > l.Max:
		r.at(seen["base"], "%s: base is %v, want at most max, %v", where, l.Base, l.Max)
	case l.LockAfter != 0 && l.LockAfter <= l.Free:
		r.at(seen["lock"], "%s: lock is %d, want more than free, %d", where, l.LockAfter, l.Free)
	case l.ForgetBeyond < max(l.Forget, l.Max):
		r.at(life, "%s: forget_beyond is %v, want at least forget, %v, and max, %v", where, l.ForgetBeyond, l.Forget, l.Max)
	case err != nil:
		r.at(n, "%s: %v", where, err)
	}
}

// duration reads a duration of up to most.
func (r *reader) duration(n *yaml.Node, where, field string, most time.Duration) time.Duration {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
		r.at(n, "%s: %s is %s, want a duration, for instance 15m", where, field, describe(n))
		return 0
	}
	d, err := parseDuration(n.Value)
	switch {
	case err != nil:
		r.at(n, "%s: %s: %v", where, field, err)
	case d < limiter.MinWindow || d > most || d%time.Microsecond != 0:
		r.at(n, "%s: %s: %s is out of range, want %v to %dd", where, field, short(n.Value), limiter.MinWindow, most/day)
	}
	return d
}
