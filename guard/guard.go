package guard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"authguard/limiter"
	"authguard/limiter/memstore"
)

// A Guard applies policies to attempts. It is safe for any number of
// goroutines and never changes after [New]. Its zero value refuses everything.
type Guard struct {
	store    limiter.Store
	local    limiter.Store // for rules that count locally while store fails; nil if there are none
	hash     *hasher
	policies map[string]*policy
	devices  deviceKeys
	resolve  func(context.Context, string) (Account, error)
	opaque   bool
	observer Observer
	now      func() time.Time

	unsettled unsettled
}

// Config is what a Guard is made of.
type Config struct {
	// Store keeps the counts.
	Store limiter.Store

	// Secret keys every name that reaches the store, so that nobody who reads
	// the store can tell or confirm an account. At least 16 bytes; 32 random
	// ones are best. All processes that share a store must share it.
	Secret []byte

	// PreviousSecret, if not nil, is the secret before Secret: device cookies
	// that it has signed are good until they expire, and signed anew when their
	// device is trusted once more. Counts begin anew with a new secret.
	PreviousSecret []byte

	// Policies, one an action.
	Policies []Policy

	// Resolve, if not nil, finds the account of a canonical name, so that all
	// names of one account share its counts, and that devices of the account are
	// known. It returns the zero Account for a name that it does not know, in the
	// same time. An error refuses the attempt as unavailable. It is called once an
	// attempt, refused ones included. Without it nobody is trusted.
	Resolve func(ctx context.Context, account string) (Account, error)

	// Opaque takes account names byte for byte. Otherwise they are user names
	// or e-mail addresses, and folded; see [Canonical].
	Opaque bool

	// Instances is how many processes share the store. While it fails, each
	// admits its share of the limits of rules with OutageLocal. 0 means 1.
	Instances int

	// Observer, if not nil, is told of every decision.
	Observer Observer

	// Now is the clock by which the time to settle a pass is measured, and by
	// which rules count locally; time.Now if nil.
	Now func() time.Time
}

const minSecret = 16

// New checks c and makes a Guard of it.
func New(c Config) (*Guard, error) {
	if c.Store == nil {
		return nil, errors.New("guard: Config.Store is nil")
	}
	if err := checkSecret(c.Secret); err != nil {
		return nil, err
	}
	if c.Instances < 0 {
		return nil, fmt.Errorf("guard: Config.Instances is %d, want at least 0", c.Instances)
	}
	if len(c.Policies) == 0 {
		return nil, errors.New("guard: Config.Policies is empty")
	}
	secrets := [][]byte{c.Secret}
	if c.PreviousSecret != nil {
		if len(c.PreviousSecret) < minSecret {
			return nil, fmt.Errorf("guard: Config.PreviousSecret is %d bytes, want at least %d", len(c.PreviousSecret), minSecret)
		}
		secrets = append(secrets, c.PreviousSecret)
	}
	devices, err := newDeviceKeys(secrets...)
	if err != nil {
		return nil, err
	}
	hash, err := newHasher(c.Secret, "subjects v1")
	if err != nil {
		return nil, err
	}
	g := &Guard{
		store:    c.Store,
		hash:     hash,
		devices:  devices,
		policies: make(map[string]*policy, len(c.Policies)),
		resolve:  c.Resolve,
		opaque:   c.Opaque,
		observer: c.Observer,
		now:      c.Now,
	}
	if c.Instances > 1 {
		g.unsettled.refused = make([]atomic.Uint64, unsettledSlots)
	}
	if g.now == nil {
		g.now = time.Now
	}
	for _, p := range c.Policies {
		if err := p.Validate(); err != nil {
			return nil, err
		}
		if g.policies[p.Action] != nil {
			return nil, fmt.Errorf("guard: two policies for action %q", p.Action)
		}
		compiled := compile(p, hash, int64(max(1, c.Instances)))
		g.policies[p.Action] = compiled
		if compiled.countsLocally && g.local == nil {
			g.local = memstore.New(memstore.Config{Now: c.Now})
		}
	}
	if err := checkShared(c.Policies); err != nil {
		return nil, err
	}
	warnOfMisuse(c)
	return g, nil
}
