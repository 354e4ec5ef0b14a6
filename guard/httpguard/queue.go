package httpguard

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"authguard/guard"
)

// queue is where admitted requests wait for their turn. It is bounded: each of
// them holds a connection and a goroutine.
type queue struct {
	waiting *atomic.Int64
	most    int64
	longest time.Duration
}

func newQueue(most int, longest time.Duration) queue {
	// A pass gives charges back within ten seconds; half of them are the handler's.
	return queue{new(atomic.Int64), int64(cmp.Or(most, 1000)), cmp.Or(longest, 5*time.Second)}
}

// wait returns after d, or says why not: the context's error, or
// [guard.ErrBusy] if there is no room or the request would not live so long.
func (q queue) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); d > q.longest || ok && time.Until(deadline) < d {
		return fmt.Errorf("%w: its turn comes in %v", guard.ErrBusy, d)
	}
	defer q.waiting.Add(-1)
	if n := q.waiting.Add(1); n > q.most {
		return fmt.Errorf("%w: %d wait for their turn", guard.ErrBusy, q.most)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// turn is how long an admitted attempt should wait.
func turn(p *guard.Pass) (d time.Duration) {
	for _, s := range p.Limits() {
		d = max(d, s.Decision.Delay)
	}
	return d
}
