package limiter

import (
	"encoding/binary"
	"fmt"
	"time"
)

// Block is a decision of people and not of counts: nobody passes until an instant.
// The zero value is the check, which an ask of a key passes unless it is blocked,
// and which never writes. With For it is the blocking: an ask has the key blocked
// for that long from now, and is denied only where a longer block stands, so that of
// two that come at one time the longer one holds, whatever their order. Forgetting
// the key ends a block.
//
// It counts nothing: an ask may have any cost, Limit is 1, and Remaining is 0 while
// the key is blocked. A refund changes nothing. What is blocked stays so when the clock is set back.
//
// The state is 8 bytes: the instant at which the block ends.
type Block struct {
	For time.Duration // 0: check; otherwise 1 ms to 366 days
}

// MaxBlock is the longest block.
const MaxBlock = maxForget

// Law is "block".
func (Block) Law() string { return "block" }

// String is "block", or for instance "block for 1h0m0s".
func (l Block) String() string {
	if l.For == 0 {
		return "block"
	}
	return fmt.Sprintf("block for %v", l.For)
}

// Validate reports a For out of range.
func (l Block) Validate() error {
	if l.For != 0 && (l.For < MinWindow || l.For > MaxBlock || l.For%time.Microsecond != 0) {
		return fmt.Errorf("limiter: Block.For is %v, want 0 or whole microseconds from %v to %v", l.For, MinWindow, MaxBlock)
	}
	return nil
}

// Take implements [Limit].
func (l Block) Take(d *Decision, dst, state []byte, now int64, ask Ask) ([]byte, error) {
	until, err := l.read(state, now, ask)
	if err != nil {
		*d = Decision{}
		return dst, err
	}
	end := min(now+l.For.Microseconds(), maxInstant)
	*d = Decision{Limit: 1, Remaining: 1, At: now, Allowed: true, ResetAfter: micros(max(0, until-now))}
	if until > now {
		d.Remaining = 0
	}
	switch {
	case ask.Cost == 0:
	case end < until:
		d.Allowed, d.RetryAfter = false, micros(until-end)
	case end > now:
		d.Remaining, d.ResetAfter = 0, micros(end-now)
		dst = binary.BigEndian.AppendUint64(dst, uint64(end))
	}
	return dst, nil
}

// Refund implements [Limit]: the state stands.
func (l Block) Refund(dst, state []byte, now, _ int64, ask Ask) ([]byte, error) {
	if _, err := l.read(state, now, ask); err != nil {
		return dst, err
	}
	return append(dst, state...), nil
}

// Share implements [Sharer]: a block is not divided.
func (l Block) Share(int64) Limit { return l }

func (l Block) read(state []byte, now int64, ask Ask) (until int64, err error) {
	if err := l.Validate(); err != nil {
		return 0, err
	}
	if err := checkAsk(now, ask.Cost, MaxLimit); err != nil {
		return 0, err
	}
	if len(state) == 0 {
		return 0, nil
	}
	if len(state) != 8 {
		return 0, fmt.Errorf("%w: %d bytes are no block", ErrState, len(state))
	}
	if until = int64(binary.BigEndian.Uint64(state)); uint64(until) > maxInstant {
		return 0, fmt.Errorf("%w: a block until %d", ErrState, until)
	}
	return until, nil
}
