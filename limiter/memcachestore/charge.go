package memcachestore

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"authguard/limiter"
)

const (
	// maxTries bounds how often a charge is tried that others get in the way of.
	maxTries = 16

	// contention is when to come again after that.
	contention = time.Second

	// skew is by how much the clocks of two processes may differ without harm.
	skew = 10 * time.Millisecond
)

// instant is the time, waited for if a process whose clock is a little ahead has
// already written it.
func (s *Store) instant(ctx context.Context, held ...entry) int64 {
	now := s.now().UnixMicro()
	ahead := time.Duration(0)
	for i := range held {
		if d := time.Duration(held[i].decided-now) * time.Microsecond; d <= skew {
			ahead = max(ahead, d)
		}
	}
	if ahead > 0 {
		sleep(ctx, ahead)
		now = s.now().UnixMicro()
	}
	return now
}

// charge makes charge i, as it was decided or, if its key has changed since, as it
// is decided anew. It reports whether it was made; after an error nobody knows.
func (b *batch) charge(c *call, i int) (bool, error) {
	charge, held, key := &b.charges[i], &b.held[i], b.keys[i]
	patient, cancel := context.WithDeadline(c.work, c.patience)
	defer cancel()
	end, stale, err := b.store.turns.wait(patient, key)
	if err != nil {
		return b.contended(c, i)
	}
	defer end()
	for try := range maxTries {
		if try > 0 && !pause(c.work, try, c.patience) {
			break
		}
		if stale || try > 0 {
			if err := b.read(c.work, i); err != nil {
				return false, err
			}
			if err := b.decide(i, b.store.instant(c.work, *held)); err != nil {
				return false, err
			}
			if !charge.Decision.Allowed {
				b.mend(c, i)
				return false, nil
			}
		}
		if len(b.next[i]) == 0 { // the charge changes nothing
			charge.Taken = true
			return true, nil
		}
		item := held.next(key, b.next[i], charge.Decision.At, charge.Decision.ResetAfter+b.store.slack, time.Now())
		switch err := b.store.write(c.work, held, item); {
		case err == nil:
			charge.Taken = true
			return true, nil
		case !conflict(err):
			return false, err
		}
	}
	return b.contended(c, i)
}

// contended denies charge i, since it was not made in time for all the others on
// its key. The server answers, so this is no error.
func (b *batch) contended(c *call, i int) (bool, error) {
	if err := c.caller.Err(); err != nil {
		return false, fmt.Errorf("memcachestore: %w", err)
	}
	b.asThingsAre(i)
	d := &b.charges[i].Decision
	d.Allowed, d.RetryAfter, d.Delay = false, contention, 0
	d.ResetAfter = max(d.ResetAfter, contention)
	return false, nil
}

// refund takes back charge i, whose key was just read. It goes on until ctx ends, for
// what is not given back stays charged; it sends again only what the server said it
// has not stored.
func (b *batch) refund(ctx context.Context, i int) error {
	charge, held, key := &b.charges[i], &b.held[i], b.keys[i]
	end, stale, err := b.store.turns.wait(ctx, key)
	if err != nil {
		return fmt.Errorf("memcachestore: %w", err)
	}
	defer end()
	deadline, _ := ctx.Deadline()
	for try := 0; ; try++ {
		if try > 0 && !pause(ctx, try, deadline) {
			return fmt.Errorf("memcachestore: %w: others keep writing the key", context.DeadlineExceeded)
		}
		if stale || try > 0 {
			if err := b.read(ctx, i); err != nil {
				return err
			}
		}
		if held.alien {
			return &limiter.ChargeError{Index: i, Err: limiter.ErrState}
		}
		left, err := charge.Limit.Refund(nil, held.state, b.store.now().UnixMicro(), charge.Decision.At, charge.Ask)
		if err != nil {
			return &limiter.ChargeError{Index: i, Err: err}
		}
		if bytes.Equal(left, held.state) {
			return nil
		}
		item := held.nothing(key)
		if len(left) > 0 {
			item = held.next(key, left, held.decided, 0, time.Now())
		}
		switch err := b.store.write(ctx, held, item); {
		case err == nil:
			held.state = left
			return nil
		case !conflict(err):
			return err
		}
	}
}
