package limiter

import (
	"encoding/binary"
	"fmt"
	"time"
)

// FixedWindow admits at most Limit units in each window of the clock: windows
// begin at multiples of Window since 1970 (UTC). It is the cheapest law and
// allows up to twice the Limit around a boundary; where that matters, use
// [SlidingWindow] or [SlidingWindowCounter].
//
// The state is 16 bytes: the instant of the last admission and the count of
// that instant's window.
type FixedWindow struct {
	Limit  int64         // units per window: 1 to 1,000,000
	Window time.Duration // 1 ms to 31 days
}

// Law is "fixed_window".
func (FixedWindow) Law() string { return "fixed_window" }

// String is for instance "100 per fixed 1m0s".
func (l FixedWindow) String() string { return fmt.Sprintf("%d per fixed %v", l.Limit, l.Window) }

// ExactRefund marks the refund as exact.
func (FixedWindow) ExactRefund() {}

// Validate reports a Limit or Window out of range.
func (l FixedWindow) Validate() error {
	if err := checkCount("FixedWindow.Limit", l.Limit); err != nil {
		return err
	}
	return checkWindow("FixedWindow.Window", l.Window)
}

// Take implements [Limit].
func (l FixedWindow) Take(d *Decision, dst, state []byte, now int64, ask Ask) ([]byte, error) {
	*d = Decision{}
	last, count, err := l.read(state, now, ask)
	if err != nil {
		return dst, err
	}
	window := l.Window.Microseconds()
	stepped := last > now // the clock went back: what was counted counts now
	if !stepped && last/window != now/window {
		count = 0
	}
	untilNext := micros(window - now%window)
	d.Limit, d.Remaining, d.At = l.Limit, max(0, l.Limit-count), now
	if count > 0 {
		d.ResetAfter = untilNext
	}
	if ask.Cost > 0 && count+ask.Cost > l.Limit {
		d.RetryAfter = untilNext
		if stepped {
			dst = appendCount(dst, now, count)
		}
		return dst, nil
	}
	d.Allowed = true
	if ask.Cost == 0 {
		return dst, nil
	}
	d.Remaining -= ask.Cost
	d.ResetAfter = untilNext
	return appendCount(dst, now, count+ask.Cost), nil
}

// Refund implements [Limit].
func (l FixedWindow) Refund(dst, state []byte, now, at int64, ask Ask) ([]byte, error) {
	last, count, err := l.read(state, now, ask)
	if err != nil {
		return dst, err
	}
	if window := l.Window.Microseconds(); last/window == at/window {
		count -= ask.Cost
	}
	if count <= 0 {
		return dst, nil
	}
	return appendCount(dst, last, count), nil
}

func (l FixedWindow) read(state []byte, now int64, ask Ask) (last, count int64, err error) {
	if err := l.Validate(); err != nil {
		return 0, 0, err
	}
	if err := checkAsk(now, ask.Cost, l.Limit); err != nil {
		return 0, 0, err
	}
	if len(state) == 0 {
		return now, 0, nil
	}
	if len(state) != 16 {
		return 0, 0, fmt.Errorf("%w: %d bytes are no fixed window", ErrState, len(state))
	}
	last = int64(binary.BigEndian.Uint64(state))
	count = int64(binary.BigEndian.Uint64(state[8:]))
	if uint64(last) > maxInstant || uint64(count) > MaxLimit {
		return 0, 0, fmt.Errorf("%w: fixed window of %d at %d", ErrState, count, last)
	}
	return last, count, nil
}

func appendCount(dst []byte, last, count int64) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(last))
	return binary.BigEndian.AppendUint64(dst, uint64(count))
}
