package httpguard

import (
	"time"

	"authguard/guard"
	"authguard/limiter"
)

// quota is what a limit admits (q of a policy) and in how long a time (w), in
// whole seconds, rounded up: in w it never admits less than a client may read
// into it at a steady pace. For a window law it is the window. A bucket has no
// window; it is given the time that it takes to fill, over which its steady rate
// is q per w, and q is its burst. A law that is not known here has no w: 0.
func quota(l limiter.Limit) (q, w int64) {
	switch l := l.(type) {
	case limiter.TokenBucket:
		return l.Capacity, fill(l.Capacity, l.Refill, l.Per)
	case limiter.LeakyBucket:
		return l.Capacity, fill(l.Capacity, l.Leak, l.Per)
	case limiter.FixedWindow:
		return l.Limit, seconds(l.Window)
	case limiter.SlidingWindow:
		return l.Limit, seconds(l.Window)
	case limiter.SlidingWindowCounter:
		return l.Limit, seconds(l.Window)
	}
	d, _, _ := limiter.Decide(l, nil, nil, 0, limiter.Ask{}) // a free ask tells the limit
	return d.Limit, 0
}

// fill is how many seconds units take to come, n of them every per.
func fill(units, n int64, per time.Duration) int64 {
	return seconds(time.Duration((units*per.Microseconds()+n-1)/n) * time.Microsecond)
}

// countsRequests is false for laws that count something else: failures in a row,
// or different members. Fields that tell of requests are silent about them.
func countsRequests(l limiter.Limit) bool {
	switch l.(type) {
	case limiter.Backoff, limiter.Distinct:
		return false
	}
	return true
}

// reset is when a limit is said to be reset. Where it denies, that is when the
// request is admitted, so that no field points beyond Retry-After; otherwise it
// is when the limit is whole again.
func reset(d limiter.Decision) time.Duration {
	if !d.Allowed {
		return d.RetryAfter
	}
	return d.ResetAfter
}

// effective is the time for which what remains is all there is ("effective
// window", draft -11, section 4.1.2). A bucket tells when the next unit comes.
// What a window's oldest admission was, a decision does not tell; then it is
// reset, which is no sooner: a client that obeys waits rather too long.
func effective(s guard.Status) time.Duration {
	var (
		d     = s.Decision
		units int64
		per   time.Duration
	)
	switch l := s.Limit.(type) {
	case limiter.TokenBucket:
		units, per = l.Refill, l.Per
	case limiter.LeakyBucket:
		units, per = l.Leak, l.Per
	default:
		return reset(d)
	}
	others := max(0, d.Limit-d.Remaining-1) // of the debt, which come after the next
	next := max(0, d.ResetAfter-time.Duration(others*per.Microseconds()/units)*time.Microsecond)
	if !d.Allowed {
		return min(next, d.RetryAfter)
	}
	return next
}
