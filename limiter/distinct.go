package limiter

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"
)

// Distinct bounds how many different members a key may touch in any span of
// Window: accounts that an address fails at, cards tried on a device. A member
// that was touched within the Window is known, and may be touched again freely;
// a new one needs a place. Whatever an ask costs, it touches one member.
//
// A success takes its own member out ([SuccessClearer]): the owner of many
// accounts, or an office behind one address, is not a guesser. Any other refund
// takes a member out only if its own charge brought it in.
//
// The state is a log of 16 bytes a member, the least recently touched first.
type Distinct struct {
	Limit  int64         // members per Window: 1 to 1,000
	Window time.Duration // 1 ms to 31 days
}

const (
	// MemberBytes is the length of Ask.Member for laws that count members.
	// [Member] makes one of any text.
	MemberBytes = 8

	touchBytes = MemberBytes + 8

	// again, in the instant of a touch, says that the member was known before.
	again = 1 << 63
)

// Law is "distinct".
func (Distinct) Law() string { return "distinct" }

// String is for instance "10 different per 1h0m0s".
func (l Distinct) String() string { return fmt.Sprintf("%d different per %v", l.Limit, l.Window) }

// ExactRefund marks the refund as exact.
func (Distinct) ExactRefund() {}

// ClearsOnSuccess marks that a success takes its member out.
func (Distinct) ClearsOnSuccess() {}

// Validate reports a Limit or Window out of range.
func (l Distinct) Validate() error {
	if l.Limit < 1 || l.Limit > maxLog {
		return fmt.Errorf("limiter: Distinct.Limit is %d, want 1 to %d", l.Limit, maxLog)
	}
	return checkWindow("Distinct.Window", l.Window)
}

// Take implements [Limit].
func (l Distinct) Take(d *Decision, dst, state []byte, now int64, ask Ask) ([]byte, error) {
	*d = Decision{}
	if err := l.check(state, now, ask); err != nil {
		return dst, err
	}
	var (
		log     = touches(state)
		window  = l.Window.Microseconds()
		stepped = log.len() > 0 && log.at(log.len()-1) > now
		gone    = 0
	)
	for gone < log.len() && log.at(gone)+window <= now {
		gone++
	}
	live := int64(log.len() - gone)
	d.Limit, d.Remaining, d.At = l.Limit, max(0, l.Limit-live), now
	// What the clock has not reached yet counts as touched now: it stepped back.
	leaves := func(i int) time.Duration { return micros(min(log.at(i), now) + window - now) }
	if live > 0 {
		d.ResetAfter = leaves(log.len() - 1)
	}
	if ask.Cost == 0 {
		d.Allowed = true
		return dst, nil
	}
	known := log.find(ask.Member)
	fresh := known < gone // a touch that has left the window, or none at all
	if fresh && live >= l.Limit {
		d.RetryAfter = leaves(gone + int(live-l.Limit))
		if stepped {
			dst = log.appendTo(dst, now, -1, 0)
		}
		return dst, nil
	}
	d.Allowed = true
	d.ResetAfter = l.Window
	// As in SlidingWindow, the log does not shrink: touches that are past for
	// these numbers may still stand for older ones in a rolling deploy.
	drop, touch := 0, uint64(now)
	if fresh {
		d.Remaining--
		if known < 0 && log.len() >= int(l.Limit) {
			drop = 1
		}
	} else {
		touch |= again
	}
	dst = log.appendTo(dst, now, known, drop)
	dst = append(dst, ask.Member...)
	return binary.BigEndian.AppendUint64(dst, touch), nil
}

// Refund implements [Limit].
func (l Distinct) Refund(dst, state []byte, now, at int64, ask Ask) ([]byte, error) {
	if err := l.check(state, now, ask); err != nil {
		return dst, err
	}
	log := touches(state)
	i := log.find(ask.Member)
	if i >= 0 && ask.Cost < MaxLimit && (log.at(i) != at || log.again(i)) {
		i = -1 // it was there before this charge, or was touched since
	}
	if i < 0 {
		return append(dst, state...), nil
	}
	dst = append(dst, state[:touchBytes*i]...)
	return append(dst, state[touchBytes*(i+1):]...), nil
}

func (l Distinct) check(state []byte, now int64, ask Ask) error {
	if err := l.Validate(); err != nil {
		return err
	}
	if err := checkAsk(now, ask.Cost, MaxLimit); err != nil {
		return err
	}
	if ask.Cost > 0 && len(ask.Member) != MemberBytes {
		return fmt.Errorf("limiter: Ask.Member is %d bytes, want %d; limiter.Member makes it of a text", len(ask.Member), MemberBytes)
	}
	if len(state)%touchBytes != 0 || len(state) > touchBytes*maxLog {
		return fmt.Errorf("%w: %d bytes are no log of members", ErrState, len(state))
	}
	log := touches(state)
	for i, last := 0, int64(0); i < log.len(); i++ {
		if log.at(i) < last || log.at(i) > maxInstant {
			return fmt.Errorf("%w: a log of members out of order", ErrState)
		}
		last = log.at(i)
	}
	return nil
}

// touches is the state of [Distinct]: members and when each was last touched.
type touches []byte

func (t touches) len() int { return len(t) / touchBytes }

func (t touches) raw(i int) uint64 {
	return binary.BigEndian.Uint64(t[touchBytes*i+MemberBytes:])
}

func (t touches) at(i int) int64 { return int64(t.raw(i) &^ again) }

func (t touches) again(i int) bool { return t.raw(i)&again != 0 }

// find is the place of a member, or -1.
func (t touches) find(member string) int {
	for i := range t.len() {
		if string(t[touchBytes*i:touchBytes*i+MemberBytes]) == member {
			return i
		}
	}
	return -1
}

// appendTo copies t without its first drop touches and without the one at skip
// (-1: none), with instants of the future pulled to now.
func (t touches) appendTo(dst []byte, now int64, skip, drop int) []byte {
	for i := drop; i < t.len(); i++ {
		if i == skip {
			continue
		}
		dst = append(dst, t[touchBytes*i:touchBytes*i+MemberBytes]...)
		dst = binary.BigEndian.AppendUint64(dst, uint64(min(t.at(i), now))|t.raw(i)&again)
	}
	return dst
}

// Member makes an Ask.Member of any text: the first 8 bytes of its SHA-256. A
// text that must stay secret wants a keyed hash instead.
func Member(text string) string {
	sum := sha256.Sum256([]byte(text))
	return string(sum[:MemberBytes])
}
