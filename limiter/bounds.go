package limiter

import (
	"errors"
	"fmt"
	"time"
)

// Bounds of what a law accepts. With them every product in a law fits an int64
// and every instant fits a float64 without loss, as Lua needs.
const (
	MaxLimit  = 1_000_000           // the largest limit, capacity, refill or cost
	MaxWindow = 31 * 24 * time.Hour // the longest window, and the longest life of a key
	MinWindow = time.Millisecond    // the shortest window

	maxInstant = 1<<53 - 1 // microseconds since 1970: the year 2255
)

// ErrCostTooHigh reports an ask that no wait will ever admit, because it costs
// more than the limit holds. It is the caller's mistake, not a denial.
var ErrCostTooHigh = errors.New("limiter: cost is above the limit's capacity")

// ErrState reports that what the store holds under a key is no state of the
// law that was asked.
var ErrState = errors.New("limiter: stored state cannot be read")

func checkCount(field string, n int64) error {
	if uint64(n-1) >= MaxLimit {
		return fmt.Errorf("limiter: %s is %d, want 1 to %d", field, n, MaxLimit)
	}
	return nil
}

func checkWindow(field string, d time.Duration) error {
	if d < MinWindow || d > MaxWindow || d%time.Microsecond != 0 {
		return fmt.Errorf("limiter: %s is %v, want whole microseconds from %v to %v", field, d, MinWindow, MaxWindow)
	}
	return nil
}

// checkAsk is the check that every Take and Refund makes of what comes from
// outside the law: its instant and its cost.
func checkAsk(now, cost, capacity int64) error {
	if uint64(now) > maxInstant {
		return fmt.Errorf("limiter: the clock says %d µs since 1970, want 0 to %d", now, int64(maxInstant))
	}
	if cost < 0 {
		return fmt.Errorf("limiter: cost is %d, want at least 0", cost)
	}
	if cost > capacity {
		return fmt.Errorf("%w: cost %d, capacity %d", ErrCostTooHigh, cost, capacity)
	}
	return nil
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }

// ceilDiv is a ÷ b rounded up, for a ≥ 0 and b > 0.
func ceilDiv(a, b int64) int64 { return (a + b - 1) / b }
