package limiter

import (
	"encoding/binary"
	"fmt"
	"time"
)

// TokenBucket holds up to Capacity tokens and gains Refill of them every Per,
// evenly: an ask of cost c takes c tokens or is denied. So it admits a burst of
// Capacity and then Refill per Per for ever. A new key has a full bucket.
//
// It is exact for rates such as three per second too: the state, 16 bytes, is
// the tokens owed and the last instant at which that was a whole number, in
// microseconds and fractions of 1/Refill microsecond.
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
func (l TokenBucket) Validate() error {
	if err := checkCount("TokenBucket.Capacity", l.Capacity); err != nil {
		return err
	}
	if err := checkCount("TokenBucket.Refill", l.Refill); err != nil {
		return err
	}
	if err := checkWindow("TokenBucket.Per", l.Per); err != nil {
		return err
	}
	if l.Capacity*l.Per.Microseconds() > l.Refill*MaxWindow.Microseconds() {
		return fmt.Errorf("limiter: TokenBucket of Capacity %d fills at %d per %v, want full within %v", l.Capacity, l.Refill, l.Per, MaxWindow)
	}
	return nil
}

// Take implements [Limit].
func (l TokenBucket) Take(dst, state []byte, now int64, ask Ask) (Decision, []byte, error) {
	b, stepped, err := l.read(state, now, ask)
	if err != nil {
		return Decision{}, dst, err
	}
	d := Decision{Limit: l.Capacity, Remaining: l.Capacity - b.owed, At: now}
	if ask.Cost > 0 && b.owed+ask.Cost > l.Capacity {
		d.RetryAfter = l.until(b, b.owed+ask.Cost-l.Capacity)
		d.ResetAfter = l.until(b, b.owed)
		if stepped {
			dst = l.append(dst, b, now)
		}
		return d, dst, nil
	}
	d.Allowed = true
	d.Remaining -= ask.Cost
	b.owed += ask.Cost
	d.ResetAfter = l.until(b, b.owed)
	if ask.Cost == 0 {
		return d, dst, nil
	}
	return d, l.append(dst, b, now), nil
}

// Refund implements [Limit]. It needs no receipt: tokens are alike.
func (l TokenBucket) Refund(dst, state []byte, now, _ int64, ask Ask) ([]byte, error) {
	b, _, err := l.read(state, now, ask)
	if err != nil {
		return dst, err
	}
	if b.owed -= ask.Cost; b.owed <= 0 {
		return dst, nil
	}
	return l.append(dst, b, now), nil
}

// debt is what a bucket owes at some instant: whole tokens, and how far the
// next one has come, in units of 1/Refill microsecond: 0 ≤ part < Per.
type debt struct{ owed, part int64 }

// until is the time that tokens take to come back, rounded up.
func (l TokenBucket) until(b debt, tokens int64) time.Duration {
	if tokens == 0 {
		return 0
	}
	return micros(ceilDiv(tokens*l.Per.Microseconds()-b.part, l.Refill))
}

// read is the debt at now. It tells, too, whether the state lay in the future,
// and was pulled to now.
func (l TokenBucket) read(state []byte, now int64, ask Ask) (b debt, stepped bool, err error) {
	if err := l.Validate(); err != nil {
		return debt{}, false, err
	}
	if err := checkAsk(now, ask.Cost, l.Capacity); err != nil {
		return debt{}, false, err
	}
	if len(state) == 0 {
		return debt{}, false, nil
	}
	if len(state) != 16 {
		return debt{}, false, fmt.Errorf("%w: %d bytes are no token bucket", ErrState, len(state))
	}
	at := int64(binary.BigEndian.Uint64(state))
	b.owed = int64(binary.BigEndian.Uint32(state[8:]))
	fraction := int64(binary.BigEndian.Uint32(state[12:]))
	if uint64(at) > maxInstant || b.owed > MaxLimit || fraction >= MaxLimit {
		return debt{}, false, fmt.Errorf("%w: %d owed at %d and %d", ErrState, b.owed, at, fraction)
	}
	b.owed = min(b.owed, l.Capacity) // the capacity may have been larger
	if fraction >= l.Refill {
		fraction = 0 // so may the refill: less than a microsecond is at stake
	}
	if at > now || at == now && fraction > 0 {
		return b, true, nil
	}
	per := l.Per.Microseconds()
	elapsed := now - at
	if elapsed >= per { // first the whole periods, so that no product overflows
		periods := elapsed / per
		if periods > b.owed {
			return debt{}, false, nil
		}
		b.owed -= periods * l.Refill
		elapsed -= periods * per
	}
	b.part = elapsed*l.Refill - fraction
	if b.part < 0 || b.part >= per {
		tokens := floorDiv(b.part, per)
		b.owed -= tokens
		b.part -= tokens * per
	}
	if b.owed <= 0 {
		return debt{}, false, nil
	}
	return b, false, nil
}

func (l TokenBucket) append(dst []byte, b debt, now int64) []byte {
	at, fraction := now, int64(0)
	if b.part > 0 {
		back := ceilDiv(b.part, l.Refill)
		at, fraction = now-back, back*l.Refill-b.part
	}
	dst = binary.BigEndian.AppendUint64(dst, uint64(at))
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.owed))
	return binary.BigEndian.AppendUint32(dst, uint32(fraction))
}
