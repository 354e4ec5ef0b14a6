package limiter

import (
	"fmt"
	"time"
)

// Backoff slows consecutive failures down: the first Free of them cost no wait;
// the last of these is followed by a wait of Base, and each further one by Factor
// times as long, up to Max; after LockAfter failures the key is locked, and only
// recovery opens it, or ForgetBeyond. So the failures of a key that never
// succeeds are bounded by LockAfter in any span of ForgetBeyond, however many the
// guessers are.
//
// Each admitted ask counts as a failure when it is made. A refund takes failures
// back: of the ask itself, or of the whole streak when it succeeded, since the
// failures are then no longer consecutive ([SuccessClearer]). The wait counts from the
// last failure. Forget after it the streak is forgotten; beyond Free, where a
// guesser would wait for that, only ForgetBeyond after it.
//
// The state is 16 bytes: the instant of the last failure (7), how long before it
// the one before was (6), and the count (3).
type Backoff struct {
	Free         int64         // failures without a wait: 1 to 1,000,000
	Base         time.Duration // the first wait: 1 ms to Max
	Factor       int64         // growth of the wait: 1 to 1,000
	Max          time.Duration // the longest wait: up to 31 days
	LockAfter    int64         // failures until the lock: more than Free; 0 means never
	Forget       time.Duration // life of a streak of up to Free failures
	ForgetBeyond time.Duration // life of a longer one: at least Forget and Max, up to 366 days
}

// maxForget bounds the life of a streak, the one state that may outlive MaxWindow.
const maxForget = 366 * 24 * time.Hour

// Law is "backoff".
func (Backoff) Law() string { return "backoff" }

// String is for instance "10 failures free, then 30s ×2 up to 1h0m0s, locked at 80".
func (l Backoff) String() string {
	s := fmt.Sprintf("%d failures free, then %v ×%d up to %v", l.Free, l.Base, l.Factor, l.Max)
	if l.LockAfter > 0 {
		s += fmt.Sprintf(", locked at %d", l.LockAfter)
	}
	return s
}

// ExactRefund marks the refund as exact: a refund of the last failure brings the
// wait of the one before back, too.
func (Backoff) ExactRefund() {}

// ClearsOnSuccess marks that a success takes back the whole streak.
func (Backoff) ClearsOnSuccess() {}

// Validate reports a number out of range.
func (l Backoff) Validate() error {
	if err := checkCount("Backoff.Free", l.Free); err != nil {
		return err
	}
	if err := checkWindow("Backoff.Max", l.Max); err != nil {
		return err
	}
	if err := checkWindow("Backoff.Base", l.Base); err != nil {
		return err
	}
	switch {
	case l.Base > l.Max:
		return fmt.Errorf("limiter: Backoff.Base is %v, want at most Max, %v", l.Base, l.Max)
	case l.Factor < 1 || l.Factor > 1000:
		return fmt.Errorf("limiter: Backoff.Factor is %d, want 1 to 1000", l.Factor)
	case l.LockAfter != 0 && (l.LockAfter <= l.Free || l.LockAfter > MaxLimit):
		return fmt.Errorf("limiter: Backoff.LockAfter is %d, want more than Free (%d) and at most %d, or 0 for never", l.LockAfter, l.Free, MaxLimit)
	case l.Forget < MinWindow || l.Forget%time.Microsecond != 0:
		return fmt.Errorf("limiter: Backoff.Forget is %v, want whole microseconds from %v", l.Forget, MinWindow)
	case l.ForgetBeyond < max(l.Forget, l.Max) || l.ForgetBeyond > maxForget || l.ForgetBeyond%time.Microsecond != 0:
		return fmt.Errorf("limiter: Backoff.ForgetBeyond is %v, want whole microseconds from Forget and Max, %v, to %v", l.ForgetBeyond, max(l.Forget, l.Max), maxForget)
	}
	return nil
}

// streak is a number of consecutive failures, the last of them at last, the one
// before that earlier by gap.
type streak struct{ last, gap, failures int64 }

// Take implements [Limit]. Cost counts failures; while they are free several
// may be asked at once, then one at a time.
func (l Backoff) Take(d *Decision, dst, state []byte, now int64, ask Ask) ([]byte, error) {
	*d = Decision{}
	s, err := l.read(state, now, ask)
	if err != nil {
		return dst, err
	}
	stepped := s.last > now // the clock went back: the last failure counts as made now
	s.last = min(s.last, now)
	life := l.life(s.failures)
	if s.failures > 0 && now >= s.last+life {
		s = streak{last: now}
	}
	d.Limit, d.At = l.Free, now
	if s.failures > 0 {
		d.ResetAfter = micros(s.last + life - now)
	}
	ready := s.last + l.wait(s.failures) // when one more failure is admitted
	locked := l.LockAfter > 0 && s.failures >= l.LockAfter
	switch {
	case s.failures < l.Free:
		d.Remaining = l.Free - s.failures
	case !locked && now >= ready:
		d.Remaining = 1
	}
	if ask.Cost > d.Remaining {
		switch {
		case locked:
			d.Locked, d.RetryAfter = true, min(l.Max, d.ResetAfter)
		case ask.Cost == 1:
			d.RetryAfter = min(micros(ready-now), d.ResetAfter)
		default: // several at once are admitted to a fresh streak only
			d.RetryAfter = d.ResetAfter
		}
		if stepped {
			dst = s.append(dst)
		}
		return dst, nil
	}
	d.Allowed = true
	if ask.Cost == 0 {
		return dst, nil
	}
	gap := int64(0)
	if s.failures > 0 && ask.Cost == 1 {
		gap = now - s.last
	}
	s = streak{now, gap, min(s.failures+ask.Cost, MaxLimit)}
	d.Remaining = max(0, l.Free-s.failures)
	d.ResetAfter = micros(l.life(s.failures))
	return s.append(dst), nil
}

// Refund implements [Limit]. A Cost of the whole streak or more clears it.
func (l Backoff) Refund(dst, state []byte, now, at int64, ask Ask) ([]byte, error) {
	s, err := l.read(state, now, Ask{Cost: min(ask.Cost, l.Free)})
	if err != nil {
		return dst, err
	}
	switch {
	case ask.Cost >= MaxLimit: // a success
		return dst, nil
	case at == s.last: // the last failure: the wait is again that of the one before
		s = streak{last: max(0, s.last-s.gap), failures: s.failures - ask.Cost}
	case s.failures > ask.Cost && at <= s.last-s.gap:
		s.failures -= ask.Cost
	default: // of a streak that has ended since
	}
	if s.failures <= 0 {
		return dst, nil
	}
	return s.append(dst), nil
}

// wait is how long after its last failure a streak must wait, in microseconds.
func (l Backoff) wait(failures int64) int64 {
	if failures < l.Free {
		return 0
	}
	wait, most := l.Base.Microseconds(), l.Max.Microseconds()
	if l.Factor == 1 {
		return wait
	}
	for n := failures - l.Free; n > 0 && wait < most; n-- {
		wait *= l.Factor // below 2.7e12 × 1000
	}
	return min(wait, most)
}

// life is how long after its last failure a streak is forgotten.
func (l Backoff) life(failures int64) int64 {
	if failures <= l.Free {
		return max(l.Forget, l.Base).Microseconds()
	}
	return l.ForgetBeyond.Microseconds()
}

func (l Backoff) read(state []byte, now int64, ask Ask) (streak, error) {
	if err := l.Validate(); err != nil {
		return streak{}, err
	}
	if err := checkAsk(now, ask.Cost, l.Free); err != nil {
		return streak{}, err
	}
	if len(state) == 0 {
		return streak{last: now}, nil
	}
	if len(state) != 16 {
		return streak{}, fmt.Errorf("%w: %d bytes are no streak", ErrState, len(state))
	}
	var s streak
	s.last, s.gap, s.failures = unpack763(state)
	if s.last > maxInstant || s.failures > MaxLimit {
		return streak{}, fmt.Errorf("%w: streak of %d at %d", ErrState, s.failures, s.last)
	}
	return s, nil
}

func (s streak) append(dst []byte) []byte { return pack763(dst, s.last, s.gap, s.failures) }
