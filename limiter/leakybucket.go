package limiter

import (
	"fmt"
	"time"
)

// LeakyBucket is a bucket of Capacity that leaks Leak units every Per, evenly;
// an ask of cost c pours c units in or, if they would overflow, is denied.
//
// Read as a meter, it admits and denies exactly like a [TokenBucket] of the same
// numbers. Read as a queue, an admitted ask has a place in it: Decision.Delay is
// how long what was poured in before takes to leak out. Whoever sleeps its Delay
// goes on at an even Leak per Per, however bursty the asks (shaping), and the
// Capacity bounds how many are under way.
//
// The state and its arithmetic are the token bucket's.
type LeakyBucket struct {
	Capacity int64         // units when full: 1 to 1,000,000
	Leak     int64         // units that leak per Per: 1 to 1,000,000
	Per      time.Duration // 1 ms to 31 days; a full bucket must be empty within 31 days
}

// Law is "leaky_bucket".
func (LeakyBucket) Law() string { return "leaky_bucket" }

// String is for instance "queue of 10, 1 per 1s".
func (l LeakyBucket) String() string {
	return fmt.Sprintf("queue of %d, %d per %v", l.Capacity, l.Leak, l.Per)
}

// Validate reports a number out of range.
func (l LeakyBucket) Validate() error { return l.bucket().validate("LeakyBucket", "Leak") }

// Take implements [Limit].
func (l LeakyBucket) Take(d *Decision, dst, state []byte, now int64, ask Ask) ([]byte, error) {
	*d = Decision{}
	if err := l.Validate(); err != nil {
		return dst, err
	}
	before, dst, err := l.bucket().take(d, dst, state, now, ask)
	if d.Allowed {
		d.Delay = l.bucket().until(before.felt, before.part)
	}
	return dst, err
}

// Refund implements [Limit]. It gives the place in the queue back; asks behind
// it keep the Delay that they were told.
func (l LeakyBucket) Refund(dst, state []byte, now, _ int64, ask Ask) ([]byte, error) {
	if err := l.Validate(); err != nil {
		return dst, err
	}
	return l.bucket().refund(dst, state, now, ask)
}

func (l LeakyBucket) bucket() bucket { return bucket{l.Capacity, l.Leak, l.Per} }
