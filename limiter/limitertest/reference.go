package limitertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"authguard/limiter"
)

// reference is the store that says what is right: a map, a law, and one lock.
// It forgets nothing, so only a test can afford it.
type reference struct {
	mu     sync.Mutex
	now    func() time.Time
	states map[string][]byte
}

func newReference(now func() time.Time) *reference {
	return &reference{now: now, states: map[string][]byte{}}
}

func (r *reference) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	next, err := r.decide(ctx, charges)
	if err != nil {
		return false, err
	}
	vote, groups := true, map[int]bool{} // groups that one of theirs denies
	for _, c := range charges {
		if !c.Decision.Allowed {
			groups[c.Advisory] = true
			vote = vote && c.Advisory != 0
		}
	}
	for i := range charges {
		c := &charges[i]
		c.Taken = vote && !groups[c.Advisory]
		if len(next[i]) > 0 && (c.Taken || !c.Decision.Allowed) { // a denial may mend
			r.states[c.Key] = next[i]
		}
		if !c.Taken {
			r.asThingsAre(c)
		}
	}
	return vote, nil
}

func (r *reference) Peek(ctx context.Context, charges []limiter.Charge) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, err := r.decide(ctx, charges); err != nil {
		return err
	}
	for i := range charges {
		r.asThingsAre(&charges[i])
	}
	return nil
}

func (r *reference) decide(ctx context.Context, charges []limiter.Charge) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := limiter.CheckBatch(charges); err != nil {
		return nil, err
	}
	now := r.now().UnixMicro()
	next := make([][]byte, len(charges))
	for i := range charges {
		c := &charges[i]
		d, out, err := limiter.Decide(c.Limit, nil, r.states[c.Key], now, c.Ask)
		if err != nil {
			return nil, &limiter.ChargeError{Index: i, Err: err}
		}
		c.Decision, next[i] = d, out
	}
	return next, nil
}

// asThingsAre tells what is left without the charge. The law has read this
// state a moment ago.
func (r *reference) asThingsAre(c *limiter.Charge) {
	if c.Decision.Allowed {
		c.Decision, _, _ = limiter.Decide(c.Limit, nil, r.states[c.Key], c.Decision.At, limiter.Ask{Member: c.Member})
	}
}

func (r *reference) Refund(ctx context.Context, charges []limiter.Charge) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	now := r.now().UnixMicro()
	for i := range charges {
		c := &charges[i]
		if !c.Taken {
			continue
		}
		c.Taken = false
		if c.Limit == nil {
			return &limiter.ChargeError{Index: i, Err: errors.New("charge has no Limit")}
		}
		left, err := c.Limit.Refund(nil, r.states[c.Key], now, c.Decision.At, c.Ask)
		if err != nil {
			return &limiter.ChargeError{Index: i, Err: err}
		}
		r.states[c.Key] = left
	}
	return nil
}

func (r *reference) Forget(ctx context.Context, keys []string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, key := range keys {
		delete(r.states, key)
	}
	return nil
}
