package limiter

import (
	"fmt"
	"time"
)

// TokenBucket holds up to Capacity tokens and gains Refill of them every Per,
// evenly: an ask of cost c takes c tokens or is denied. So it admits a burst of
// Capacity and then Refill per Per for ever. A new key has a full bucket.
//
// It is exact for rates such as three per second too: the state, 16 bytes, keeps
// the part of a token that has come in fractions of 1/Refill microsecond.
//
// A refund gives tokens back, capped at the Capacity: tokens that would have
// overflowed meanwhile cannot be told apart, so a rule that counts failures
// takes a window instead.
type TokenBucket struct {
	Capacity int64         // tokens when full: 1 to 1,000,000
	Refill   int64         // tokens gained per Per: 1 to 1,000,000
	Per      time.Duration // 1 ms to 31 days; an empty bucket must fill within 31 days
}

// Law is "token_bucket".
func (TokenBucket) Law() string { return "token_bucket" }

// String is for instance "10 at once, 1 per 1s".
func (l TokenBucket) String() string {
	return fmt.Sprintf("%d at once, %d per %v", l.Capacity, l.Refill, l.Per)
}

// Validate reports a number out of range.
func (l TokenBucket) Validate() error { return l.bucket().validate("TokenBucket", "Refill") }

// Take implements [Limit].
func (l TokenBucket) Take(d *Decision, dst, state []byte, now int64, ask Ask) ([]byte, error) {
	*d = Decision{}
	if err := l.Validate(); err != nil {
		return dst, err
	}
	_, dst, err := l.bucket().take(d, dst, state, now, ask)
	return dst, err
}

// Refund implements [Limit]. It needs no receipt: tokens are alike.
func (l TokenBucket) Refund(dst, state []byte, now, _ int64, ask Ask) ([]byte, error) {
	if err := l.Validate(); err != nil {
		return dst, err
	}
	return l.bucket().refund(dst, state, now, ask)
}

func (l TokenBucket) bucket() bucket { return bucket{l.Capacity, l.Refill, l.Per} }
