package limiter

import (
	"encoding/binary"
	"fmt"
	"time"
)

// bucket is the arithmetic of [TokenBucket] and [LeakyBucket]: a debt that may
// reach capacity, and shrinks by rate every per.
//
// The state is 16 bytes: the instant of the last change (7), how far the next
// unit had come then, in 1/rate microsecond (6), and the units owed (3).
type bucket struct {
	capacity int64
	rate     int64
	per      time.Duration
}

func (l bucket) validate(law, rate string) error {
	if uint64(l.capacity-1) < MaxLimit && uint64(l.rate-1) < MaxLimit && l.per >= MinWindow && l.per <= MaxWindow && l.per%time.Microsecond == 0 &&
		l.capacity*l.per.Microseconds() <= l.rate*MaxWindow.Microseconds() {
		return nil
	}
	if err := checkCount(law+".Capacity", l.capacity); err != nil {
		return err
	}
	if err := checkCount(law+"."+rate, l.rate); err != nil {
		return err
	}
	if err := checkWindow(law+".Per", l.per); err != nil {
		return err
	}
	return fmt.Errorf("limiter: %s of Capacity %d at %d per %v takes longer than %v from end to end", law, l.capacity, l.rate, l.per, MaxWindow)
}

// debt is what a bucket owes at some instant.
type debt struct {
	owed int64 // units
	// part is how far the next unit has come: 0 ≤ part < per, in 1/rate µs.
	part int64
	// felt is what the bucket answers by. It is owed, unless the capacity was
	// larger when that was charged: then a full bucket is felt, from which at
	// most capacity must leak before the ask is admitted, while processes that
	// still have the larger capacity find their whole debt.
	felt int64
}

// take is Limit.Take for an empty d, and tells the debt before the ask too.
func (l bucket) take(d *Decision, dst, state []byte, now int64, ask Ask) (before debt, _ []byte, err error) {
	b, stepped, err := l.read(state, now, ask)
	if err != nil {
		return debt{}, dst, err
	}
	d.Limit, d.Remaining, d.At = l.capacity, l.capacity-b.felt, now
	if ask.Cost == 0 || b.felt+ask.Cost > l.capacity {
		d.ResetAfter = l.reset(b)
		d.Allowed = ask.Cost == 0
		if !d.Allowed {
			d.RetryAfter = l.until(b.felt+ask.Cost-l.capacity, b.part)
			if stepped {
				dst = b.append(dst, now)
			}
		}
		return b, dst, nil
	}
	before = b
	b.owed += ask.Cost
	b.felt = min(b.owed, l.capacity)
	d.Allowed = true
	d.Remaining = l.capacity - b.felt
	d.ResetAfter = l.reset(b)
	return before, b.append(dst, now), nil
}

// refund gives cost back, and leaves the time that has passed to count.
func (l bucket) refund(dst, state []byte, now int64, ask Ask) ([]byte, error) {
	b, _, err := l.read(state, now, ask)
	if err != nil {
		return dst, err
	}
	if b.owed <= ask.Cost {
		return dst, nil
	}
	at, part, owed := unpack763(state)
	return pack763(dst, min(at, now), part, owed-ask.Cost), nil
}

// until is the time that units take to leak, rounded up.
func (l bucket) until(units, part int64) time.Duration {
	if units == 0 {
		return 0
	}
	return micros(ceilDiv(units*l.per.Microseconds()-part, l.rate))
}

// reset is the time until nothing is owed. A debt from a far larger capacity is
// remitted when it has lived as long as any key may.
func (l bucket) reset(b debt) time.Duration {
	if b.owed*l.per.Microseconds() > l.rate*MaxWindow.Microseconds() {
		return MaxWindow
	}
	return l.until(b.owed, b.part)
}

// read is the debt at now. It tells, too, whether the state lay in the future,
// and counts from now on.
func (l bucket) read(state []byte, now int64, ask Ask) (b debt, stepped bool, err error) {
	if err := checkAsk(now, ask.Cost, l.capacity); err != nil {
		return debt{}, false, err
	}
	if len(state) == 0 {
		return debt{}, false, nil
	}
	if len(state) != 16 {
		return debt{}, false, fmt.Errorf("%w: %d bytes are no bucket", ErrState, len(state))
	}
	at, part, owed := unpack763(state)
	if at > maxInstant || owed > 2*MaxLimit || part >= MaxWindow.Microseconds() {
		return debt{}, false, fmt.Errorf("%w: bucket owes %d and %d at %d", ErrState, owed, part, at)
	}
	per := l.per.Microseconds()
	if part >= per {
		part = 0 // it was counted in longer periods: less than a unit is at stake
	}
	b = debt{owed: owed, part: part, felt: min(owed, l.capacity)}
	if at > now {
		// The clock went back. What came of the next unit meanwhile is undone, so
		// that a clock that trembles does not run ahead; units that came stay.
		b.part -= min(at-now, MaxWindow.Microseconds()) * l.rate
		stepped = b.part < 0
		b.part = max(0, b.part)
		return b, stepped, nil
	}
	elapsed, leaked := now-at, int64(0)
	if elapsed >= per { // first the whole periods, so that no product overflows
		periods := elapsed / per
		if periods >= owed {
			return debt{}, false, nil
		}
		leaked = periods * l.rate
		elapsed -= periods * per
	}
	b.part += elapsed * l.rate
	if b.part >= per {
		leaked += b.part / per
		b.part %= per
	}
	if leaked >= owed {
		return debt{}, false, nil
	}
	b.owed -= leaked
	b.felt = max(0, b.felt-leaked)
	return b, false, nil
}

func (b debt) append(dst []byte, now int64) []byte { return pack763(dst, now, b.part, b.owed) }

// pack763 is the form of states of three numbers: 7, 6 and 3 bytes, big-endian.
func pack763(dst []byte, a, b, c int64) []byte {
	return append(dst,
		byte(a>>48), byte(a>>40), byte(a>>32), byte(a>>24), byte(a>>16), byte(a>>8), byte(a),
		byte(b>>40), byte(b>>32), byte(b>>24), byte(b>>16), byte(b>>8), byte(b),
		byte(c>>16), byte(c>>8), byte(c))
}

func unpack763(s []byte) (a, b, c int64) {
	hi, lo := binary.BigEndian.Uint64(s), binary.BigEndian.Uint64(s[8:])
	return int64(hi >> 8), int64(hi&0xff<<40 | lo>>24), int64(lo & 0xffffff)
}
