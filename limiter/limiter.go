package limiter

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A Limiter is one or more limits on each key of a store: the package for those
// who only want to limit something.
//
//	l, err := limiter.New(memstore.New(memstore.Config{}), limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Second})
//	r, err := l.Allow(ctx, "alice")
//
// With several limits, tiers, all of them admit and are charged, or none is.
// For one limit on everything use one constant key, such as "". Limiters that
// share a store share the state of equal keys; a prefix keeps them apart.
//
// It is safe for any number of goroutines.
type Limiter struct {
	store    Store
	limits   []Limit
	suffixes []string // of the tiers' keys
}

// Result is the answer of a Limiter. Its Decision is that of the tier that
// decides: of those that deny, the one with the longest wait; if none does, the
// one that leaves least.
type Result struct {
	Decision
	Tiers []Tier // of every limit, in the order of New
}

// Tier is one of a Limiter's limits and what it said.
type Tier struct {
	Limit    Limit
	Decision Decision
}

// Denying are the tiers that deny.
func (r Result) Denying() []Tier {
	var denying []Tier
	for _, t := range r.Tiers {
		if !t.Decision.Allowed {
			denying = append(denying, t)
		}
	}
	return denying
}

// ErrDenied is wrapped by what [Limiter.Wait] returns when waiting does not
// help: the queue is full, the key is locked, or the context would end first.
var ErrDenied = errors.New("limiter: denied")

// New checks the limits and makes a Limiter of them.
func New(store Store, limits ...Limit) (*Limiter, error) {
	if store == nil {
		return nil, errors.New("limiter: store is nil")
	}
	if len(limits) == 0 {
		return nil, errors.New("limiter: no limits")
	}
	l := &Limiter{store: store, limits: limits}
	for i, limit := range limits {
		if limit == nil {
			return nil, fmt.Errorf("limiter: limit %d is nil", i)
		}
		if err := limit.Validate(); err != nil {
			return nil, err
		}
		// The law is part of the key: another law never reads its state.
		l.suffixes = append(l.suffixes, "/"+limit.Law()+strconv.Itoa(i))
	}
	return l, nil
}

// Allow asks for one unit of key's limits.
func (l *Limiter) Allow(ctx context.Context, key string) (Result, error) {
	return l.AllowN(ctx, key, 1)
}

// AllowN asks for n units at once. More than a limit could ever hold is
// [ErrCostTooHigh].
func (l *Limiter) AllowN(ctx context.Context, key string, n int64) (Result, error) {
	charges := l.charges(key, Ask{Cost: n})
	if _, err := l.store.Take(ctx, charges); err != nil {
		return Result{}, err
	}
	return result(charges), nil
}

// AllowMember asks for member to be touched under key, for limits that count
// different members ([Distinct]). member is any text.
func (l *Limiter) AllowMember(ctx context.Context, key, member string) (Result, error) {
	charges := l.charges(key, Ask{Cost: 1, Member: Member(member)})
	if _, err := l.store.Take(ctx, charges); err != nil {
		return Result{}, err
	}
	return result(charges), nil
}

// Wait asks for one unit and returns when it is this ask's turn: nil, or why
// not. A [LeakyBucket] gives a place in its queue, which Wait sleeps through; a
// full queue is [ErrDenied] at once. With other laws Wait sleeps until the key
// admits and asks again, without an order among those who wait. It never sleeps
// if the context's deadline comes first, and when the context ends meanwhile,
// it gives the place back and returns the context's error.
func (l *Limiter) Wait(ctx context.Context, key string) error {
	for {
		charges := l.charges(key, Ask{Cost: 1})
		ok, err := l.store.Take(ctx, charges)
		if err != nil {
			return err
		}
		r := result(charges)
		if !ok {
			if r.Locked || l.queueFull(charges) || !fits(ctx, r.RetryAfter) {
				return fmt.Errorf("%w: %v, retry after %v", ErrDenied, l.limits[deciding(charges)], r.RetryAfter)
			}
			if err := sleep(ctx, r.RetryAfter); err != nil {
				return err
			}
			continue
		}
		if !fits(ctx, r.Delay) {
			l.giveBack(ctx, charges)
			return fmt.Errorf("%w: its turn comes in %v, after the deadline", ErrDenied, r.Delay)
		}
		if err := sleep(ctx, r.Delay); err != nil {
			l.giveBack(ctx, charges)
			return err
		}
		return nil
	}
}

// Peek says what Allow would say, and charges nothing.
func (l *Limiter) Peek(ctx context.Context, key string) (Result, error) {
	charges := l.charges(key, Ask{Cost: 1})
	if err := l.store.Peek(ctx, charges); err != nil {
		return Result{}, err
	}
	return result(charges), nil
}

// Reset makes key's limits whole.
func (l *Limiter) Reset(ctx context.Context, key string) error {
	keys := make([]string, len(l.suffixes))
	for i, suffix := range l.suffixes {
		keys[i] = key + suffix
	}
	return l.store.Forget(ctx, keys)
}

func (l *Limiter) charges(key string, ask Ask) []Charge {
	charges := make([]Charge, len(l.limits))
	for i, limit := range l.limits {
		charges[i] = Charge{Key: key + l.suffixes[i], Limit: limit, Ask: ask}
	}
	return charges
}

// queueFull reports that a queue denies: waiting outside it would be a second
// queue without a bound.
func (l *Limiter) queueFull(charges []Charge) bool {
	for i := range charges {
		if _, queue := charges[i].Limit.(LeakyBucket); queue && !charges[i].Decision.Allowed {
			return true
		}
	}
	return false
}

// giveBack refunds although ctx may have ended.
func (l *Limiter) giveBack(ctx context.Context, charges []Charge) {
	_ = l.store.Refund(context.WithoutCancel(ctx), charges) // at worst the place stays taken
}

func result(charges []Charge) Result {
	r := Result{Decision: charges[deciding(charges)].Decision, Tiers: make([]Tier, len(charges))}
	for i := range charges {
		c := &charges[i]
		r.Tiers[i] = Tier{c.Limit, c.Decision}
		r.Delay = max(r.Delay, c.Decision.Delay)
		r.Locked = r.Locked || c.Decision.Locked
	}
	return r
}

// deciding is the index of the charge that decides, see [Result].
func deciding(charges []Charge) int {
	best := 0
	for i := range charges {
		a, b := &charges[i].Decision, &charges[best].Decision
		switch {
		case a.Allowed != b.Allowed:
			if !a.Allowed {
				best = i
			}
		case !a.Allowed && a.RetryAfter > b.RetryAfter, a.Allowed && a.Remaining < b.Remaining:
			best = i
		}
	}
	return best
}

// fits reports that ctx lives for at least d from now.
func fits(ctx context.Context, d time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) >= d
}

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
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
