package denycache

import (
	"time"

	"authguard/limiter"
)

// recheck is how long a denial is repeated until the store is asked again.
const recheck = 10 * time.Second

// record is a key that the store denies. Instants are nanoseconds of this
// process's clock, but for those in said.
type record struct {
	limit limiter.Limit
	since int64 // when the first answer arrived that named the end of this denial

	// The last answer: when it was asked for, when it arrived, and what it said.
	sent, received int64
	said           limiter.Decision
}

// end is until when a denial holds, by the store's clock. It stays the same from
// one answer to the next as long as nothing happens to the key.
func end(d *limiter.Decision) int64 { return d.At + lasts(d).Microseconds() }

// lasts is how long a denial holds. A lock names a wait after which to look
// again, and holds until the key is forgotten.
func lasts(d *limiter.Decision) time.Duration {
	if d.Locked {
		return d.ResetAfter
	}
	return d.RetryAfter
}

// stands reports that the store would deny now. The answer was given after it was
// asked for, so from there its end is counted: too early is asked again, too late
// would deny what is admitted.
func (r *record) stands(now int64, settle time.Duration) bool {
	age := time.Duration(now - r.sent)
	return time.Duration(now-r.since) >= settle && now >= r.received && age < recheck && age < lasts(&r.said)
}

// inUse reports that denials were answered by r lately, and can be again.
func (r *record) inUse(now int64, settle time.Duration) bool {
	return time.Duration(now-r.since) >= settle && time.Duration(now-r.received) < 2*recheck && time.Duration(now-r.sent) < lasts(&r.said)
}

// tell is the decision as the store would give it now. The answer was given before
// it arrived, so the wait is counted from there: whoever waits as told is admitted.
func (r *record) tell(now int64) limiter.Decision {
	passed := time.Duration(now - r.received).Truncate(time.Microsecond)
	d := r.said
	d.At += passed.Microseconds()
	d.ResetAfter = max(0, d.ResetAfter-passed)
	if d.Locked {
		d.RetryAfter = min(d.RetryAfter, d.ResetAfter)
	} else {
		d.RetryAfter -= passed
	}
	return d
}
