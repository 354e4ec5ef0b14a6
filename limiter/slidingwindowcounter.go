package limiter

import (
	"encoding/binary"
	"fmt"
	"time"
)

// SlidingWindowCounter approximates a sliding window of any Limit in 16 bytes:
// it counts the current window of the clock and the one before, and weighs the
// latter by the part of it that a window ending now still covers:
//
//	previous × (Window − elapsed) ÷ Window + current ≤ Limit
//
// computed in integers, without rounding. The estimate is exact when the
// requests of the previous window were spread evenly; at worst, when they all
// came at its end or start, it is off by the previous count's covered share.
// (The form is the one published by Cloudflare in 2017, "How we built rate
// limiting capable of scaling to millions of domains".)
//
// The state is the instant of the last admission and the two counts of it. When
// a live key's Window grows, what the old numbers counted in their previous
// window goes on as the previous window's of the new ones.
type SlidingWindowCounter struct {
	Limit  int64         // units per Window: 1 to 1,000,000
	Window time.Duration // 1 ms to 31 days
}

// Law is "sliding_window_counter".
func (SlidingWindowCounter) Law() string { return "sliding_window_counter" }

// String is for instance "about 300 per 1m0s".
func (l SlidingWindowCounter) String() string {
	return fmt.Sprintf("about %d per %v", l.Limit, l.Window)
}

// ExactRefund marks the refund as exact.
func (SlidingWindowCounter) ExactRefund() {}

// Validate reports a Limit or Window out of range.
func (l SlidingWindowCounter) Validate() error {
	if err := checkCount("SlidingWindowCounter.Limit", l.Limit); err != nil {
		return err
	}
	if err := checkWindow("SlidingWindowCounter.Window", l.Window); err != nil {
		return err
	}
	if l.Window > MaxWindow/2 {
		// Its counts live for two windows.
		return fmt.Errorf("limiter: SlidingWindowCounter.Window is %v, want at most %v", l.Window, MaxWindow/2)
	}
	return nil
}

// counts are the admissions of the window that holds the instant at, and of
// the window before it.
type counts struct {
	at                int64
	previous, current int64
}

// Take implements [Limit].
func (l SlidingWindowCounter) Take(d *Decision, dst, state []byte, now int64, ask Ask) ([]byte, error) {
	*d = Decision{}
	c, err := l.read(state, now, ask)
	if err != nil {
		return dst, err
	}
	window := l.Window.Microseconds()
	stepped := c.at > now
	c = c.roll(now, window)
	var (
		elapsed = now % window
		weighed = ceilDiv(c.previous*(window-elapsed), window) // admission in whole units rounds the estimate up
	)
	d.Limit, d.Remaining, d.At = l.Limit, max(0, l.Limit-c.current-weighed), now
	switch {
	case c.current > 0:
		d.ResetAfter = micros(2*window - elapsed)
	case c.previous > 0:
		d.ResetAfter = micros(window - elapsed)
	}
	if ask.Cost > 0 && c.current+weighed+ask.Cost > l.Limit {
		d.RetryAfter = micros(c.wait(l.Limit-ask.Cost, window, elapsed))
		if stepped {
			dst = c.append(dst)
		}
		return dst, nil
	}
	d.Allowed = true
	if ask.Cost == 0 {
		return dst, nil
	}
	c.current += ask.Cost
	d.Remaining -= ask.Cost
	d.ResetAfter = micros(2*window - elapsed)
	return c.append(dst), nil
}

// Refund implements [Limit].
func (l SlidingWindowCounter) Refund(dst, state []byte, now, at int64, ask Ask) ([]byte, error) {
	c, err := l.read(state, now, ask)
	if err != nil {
		return dst, err
	}
	window := l.Window.Microseconds()
	switch c.at/window - at/window {
	case 0:
		c.current = max(0, c.current-ask.Cost)
	case 1:
		c.previous = max(0, c.previous-ask.Cost)
	}
	if c.current == 0 && c.previous == 0 {
		return dst, nil
	}
	return c.append(dst), nil
}

// roll moves the counts to the window of now.
func (c counts) roll(now, window int64) counts {
	switch n := now/window - c.at/window; {
	case n == 0:
		return counts{now, c.previous, c.current}
	case n == 1:
		return counts{now, c.current, 0}
	case n < 0: // the clock went back: what was counted counts now
		return counts{now, 0, min(c.previous+c.current, MaxLimit)}
	}
	return counts{at: now}
}

// wait is how long it takes, from elapsed into the window of the counts, until
// no more than room units stand.
func (c counts) wait(room, window, elapsed int64) int64 {
	if room >= c.current {
		return decayed(c.previous, room-c.current, window) - elapsed
	}
	// Not in this window: in the next one current is what decays.
	return window - elapsed + decayed(c.current, room, window)
}

// decayed is the instant of a window from which n units of the window before
// weigh no more than room, if n is more: the smallest e with
// n × (window − e) ≤ room × window.
func decayed(n, room, window int64) int64 {
	return window - room*window/n
}

func (l SlidingWindowCounter) read(state []byte, now int64, ask Ask) (counts, error) {
	if err := l.Validate(); err != nil {
		return counts{}, err
	}
	if err := checkAsk(now, ask.Cost, l.Limit); err != nil {
		return counts{}, err
	}
	if len(state) == 0 {
		return counts{at: now}, nil
	}
	if len(state) != 16 {
		return counts{}, fmt.Errorf("%w: %d bytes are no sliding window counter", ErrState, len(state))
	}
	c := counts{
		at:       int64(binary.BigEndian.Uint64(state)),
		previous: int64(binary.BigEndian.Uint32(state[8:])),
		current:  int64(binary.BigEndian.Uint32(state[12:])),
	}
	if uint64(c.at) > maxInstant || c.previous > MaxLimit || c.current > MaxLimit {
		return counts{}, fmt.Errorf("%w: counts %d and %d at %d", ErrState, c.previous, c.current, c.at)
	}
	return c, nil
}

func (c counts) append(dst []byte) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.at))
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.previous))
	return binary.BigEndian.AppendUint32(dst, uint32(c.current))
}
