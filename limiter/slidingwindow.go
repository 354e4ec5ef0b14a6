package limiter

import (
	"encoding/binary"
	"fmt"
	"time"
)

// SlidingWindow admits at most Limit units in any span of Window: exactly, at
// every instant. It remembers the instants of the last Limit admissions, 8
// bytes each, so it is for the strict limits on secrets. From 1,001 on, use
// [SlidingWindowCounter].
//
// The state is a sorted log of big-endian instants without a header. An
// admission made at s counts while t < s+Window. Admissions of one microsecond
// are equal entries of the log, so an instant is a full receipt.
type SlidingWindow struct {
	Limit  int64         // admissions per Window: 1 to 1,000
	Window time.Duration // 1 ms to 31 days
}

const (
	maxLog     = 1_000 // entries
	entryBytes = 8
)

// Law is "sliding_window".
func (SlidingWindow) Law() string { return "sliding_window" }

// String is for instance "5 per 15m0s".
func (l SlidingWindow) String() string { return fmt.Sprintf("%d per %v", l.Limit, l.Window) }

// ExactRefund marks the refund as exact.
func (SlidingWindow) ExactRefund() {}

// Validate reports a Limit or Window out of range.
func (l SlidingWindow) Validate() error {
	if l.Limit > maxLog {
		return fmt.Errorf("limiter: SlidingWindow.Limit is %d, want 1 to %d: it stores every admission; SlidingWindowCounter holds up to %d", l.Limit, maxLog, MaxLimit)
	}
	if err := checkCount("SlidingWindow.Limit", l.Limit); err != nil {
		return err
	}
	return checkWindow("SlidingWindow.Window", l.Window)
}

// Take implements [Limit].
func (l SlidingWindow) Take(d *Decision, dst, state []byte, now int64, ask Ask) ([]byte, error) {
	*d = Decision{}
	if err := l.check(state, now, ask); err != nil {
		return dst, err
	}
	var (
		window = l.Window.Microseconds()
		n      = len(state) / entryBytes
		gone   = countUpTo(state, now-window)
		live   = int64(n - gone)
	)
	d.Limit, d.Remaining, d.At = l.Limit, max(0, l.Limit-live), now
	// What the clock has not reached yet counts as made now: it stepped back.
	leaves := func(i int) time.Duration { return micros(min(entry(state, i), now) + window - now) }
	if live > 0 {
		d.ResetAfter = leaves(n - 1)
	}
	if excess := live + ask.Cost - l.Limit; ask.Cost > 0 && excess > 0 {
		d.RetryAfter = leaves(gone + int(excess) - 1)
		if entry(state, n-1) > now {
			dst = appendLog(dst, state, now)
		}
		return dst, nil
	}
	d.Allowed = true
	if ask.Cost == 0 {
		return dst, nil
	}
	d.Remaining -= ask.Cost
	d.ResetAfter = l.Window
	// The log never shrinks by an admission: entries that are past for these
	// numbers may still stand for older, larger ones in a rolling deploy.
	drop := n + int(ask.Cost) - max(n, int(l.Limit))
	dst = appendLog(dst, state[entryBytes*max(0, drop):], now)
	for range ask.Cost {
		dst = binary.BigEndian.AppendUint64(dst, uint64(now))
	}
	return dst, nil
}

// Refund implements [Limit].
func (l SlidingWindow) Refund(dst, state []byte, now, at int64, ask Ask) ([]byte, error) {
	if err := l.check(state, now, ask); err != nil {
		return dst, err
	}
	to := countUpTo(state, at)
	from := to
	for from > 0 && int64(to-from) < ask.Cost && entry(state, from-1) == at {
		from--
	}
	dst = append(dst, state[:entryBytes*from]...)
	return append(dst, state[entryBytes*to:]...), nil
}

func (l SlidingWindow) check(state []byte, now int64, ask Ask) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if len(state)%entryBytes != 0 || len(state) > entryBytes*maxLog {
		return fmt.Errorf("%w: %d bytes are no log of a sliding window", ErrState, len(state))
	}
	for i, last := 0, int64(0); i < len(state)/entryBytes; i++ {
		at := entry(state, i)
		if at < last || at > maxInstant {
			return fmt.Errorf("%w: a sliding window's log out of order", ErrState)
		}
		last = at
	}
	return checkAsk(now, ask.Cost, l.Limit)
}

func entry(log []byte, i int) int64 {
	return int64(binary.BigEndian.Uint64(log[entryBytes*i:]))
}

// countUpTo is the number of entries at or before t.
func countUpTo(log []byte, t int64) int {
	lo, hi := 0, len(log)/entryBytes
	for lo < hi {
		mid := int(uint(lo+hi) / 2)
		if entry(log, mid) <= t {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// appendLog copies log, with instants of the future pulled to now.
func appendLog(dst, log []byte, now int64) []byte {
	past := entryBytes * countUpTo(log, now)
	dst = append(dst, log[:past]...)
	for ; past < len(log); past += entryBytes {
		dst = binary.BigEndian.AppendUint64(dst, uint64(now))
	}
	return dst
}
