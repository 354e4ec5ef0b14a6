package limiter

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Store remembers the state of every key and applies the laws to it. It is
// safe for any number of goroutines.
//
// The whole slice is one step: nobody ever sees half of it. A store that cannot
// (its keys lie on several servers, say) compensates: it gives back what it has
// charged when a later charge is denied, and says so in its documentation. While
// calls are under way it may deny what it could admit; it never admits too much.
//
// A charge or a refund is sent once and never repeated by the store: when its
// fate is unknown (a lost reply, say), the charge stands or the unit stays lost.
// The caller owns the slice; the store keeps no part of it after returning.
type Store interface {
	// Take decides all charges together. If every voting charge (Advisory 0)
	// is admitted, all of them are charged and Take returns true; if one
	// denies, nothing at all is charged and it returns false. It fills in
	// Decision and Taken of every charge; of a batch that is denied it may leave
	// some that do not deny unasked (Decision.NotAsked). On an error nothing is
	// charged and the caller must treat the whole as unanswered, neither yes nor no.
	// An empty slice, a key that comes twice and a cost below 1 are errors.
	Take(ctx context.Context, charges []Charge) (bool, error)

	// Peek fills in each Decision as things are and changes nothing: Allowed
	// and RetryAfter are what Take would say, each limit for itself.
	Peek(ctx context.Context, charges []Charge) error

	// Refund takes back the charges that are Taken, and clears Taken. Others
	// in the slice are left alone.
	Refund(ctx context.Context, charges []Charge) error

	// Forget drops everything that is known of the keys.
	Forget(ctx context.Context, keys []string) error
}

// A Charge is one limit on one key, asked as part of a batch. Once Taken it is
// its own receipt: handed to Refund unchanged, it is given back.
type Charge struct {
	Key   string
	Limit Limit
	Ask

	// Advisory charges never vote. They are taken, if the vote admits, in
	// groups: those with the same number are all admitted and taken, or none
	// of them is. 0 is no group: such a charge votes. An advisory cost that is
	// too high is no error: it is not admitted.
	Advisory int

	Decision Decision // filled in by Take and Peek
	Taken    bool     // filled in by Take: this charge stands
}

// CheckBatch reports what makes charges no batch for a Store: none at all, a
// missing limit, a cost below 1, or a key that comes twice. Every Store calls
// it first.
func CheckBatch(charges []Charge) error {
	if len(charges) == 0 {
		return errors.New("limiter: no charges")
	}
	for i := range charges {
		c := &charges[i]
		if c.Limit == nil {
			return &ChargeError{Index: i, Err: errors.New("limiter: charge has no Limit")}
		}
		if c.Cost < 1 {
			return &ChargeError{Index: i, Err: fmt.Errorf("limiter: Cost is %d, want at least 1", c.Cost)}
		}
		for j := range i {
			if sameKey(charges[j].Key, c.Key) {
				return &ChargeError{Index: i, Err: fmt.Errorf("limiter: charge %d has the same Key", j)}
			}
		}
	}
	return nil
}

// sameKey looks at the last bytes first, since the keys of a batch mostly differ
// there: many limits of one subject.
func sameKey(a, b string) bool {
	n := len(a)
	return n == len(b) && (n == 0 || a[n-1] == b[n-1]) && a == b
}

// ErrOverloaded is wrapped by the error of a store that is up and has no room for
// the call: too many come at once. It is no outage; whoever sends them must not be
// able to choose what happens in one.
var ErrOverloaded = errors.New("limiter: too many calls of the store at once")

// Gone reports that whoever asked under ctx does not wait any more: it is
// cancelled, or its deadline is here, which a socket may notice a little before
// the context does. What then fails is no fault of the store.
func Gone(ctx context.Context) bool {
	const almost = 5 * time.Millisecond
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && time.Until(deadline) < almost
}

// A ChargeError says which charge of a batch an error is about. It does not
// repeat the key, which may be a secret.
type ChargeError struct {
	Index int // in the slice given to the store
	Err   error
}

func (e *ChargeError) Error() string { return fmt.Sprintf("charge %d: %v", e.Index, e.Err) }
func (e *ChargeError) Unwrap() error { return e.Err }
