package memcachestore

import (
	"context"
	"math/rand/v2"
	"time"
)

// A call is the time that a Take has, until its deadline or the store's Timeout. It
// competes with others for a key during the first half; then there is enough left
// for an exchange that was begun. The last quarter is for giving back, which goes
// on when the caller has gone.
type call struct {
	caller, work, back context.Context
	patience           time.Time
	end                func()
}

func (s *Store) begin(ctx context.Context) *call {
	now := time.Now()
	left := s.timeout
	if deadline, ok := ctx.Deadline(); ok {
		left = min(left, deadline.Sub(now))
	}
	work, endWork := context.WithDeadline(ctx, now.Add(left*3/4))
	back, endBack := context.WithDeadline(context.WithoutCancel(ctx), now.Add(left))
	return &call{caller: ctx, work: work, back: back, patience: now.Add(left / 2), end: func() { endWork(); endBack() }}
}

const (
	minPause = 100 * time.Microsecond
	maxPause = 4 * time.Millisecond
)

// pause waits before another try, longer from try to try, and for a random time,
// so that those who met do not meet again. It reports whether there is time for it
// before end.
func pause(ctx context.Context, try int, end time.Time) bool {
	d := rand.N(min(minPause<<min(try, 10), maxPause))
	if time.Until(end) < d {
		return false
	}
	return sleep(ctx, d)
}

// sleep reports whether ctx lasted.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
