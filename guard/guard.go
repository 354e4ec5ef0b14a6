package guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"authguard/limiter"
	"authguard/limiter/memstore"
)

// A Guard applies policies to attempts. It is safe for any number of
// goroutines, and nothing of it but its policies and lists ever changes after [New]; see
// [Guard.SetPolicies] and [Guard.SetLists]. Its zero value refuses everything.
type Guard struct {
	store     limiter.Store
	local     limiter.Store // for rules that count locally while store fails, and for blocks
	hashes    []*hasher     // of the secret and, if there is one, of the one before
	lists     atomic.Pointer[lists]
	index     *index
	devices   deviceKeys
	resolve   func(context.Context, string) (Account, error)
	opaque    bool
	observer  Observer
	records   *records
	now       func() time.Time
	instances int64

	challenger Challenger
	tokens     tokenKey
	onceKey    storeKey // by which a token is used up, but for the token

	unsettled unsettled

	setting sync.Mutex // is held while policies are replaced
	inForce atomic.Pointer[policies]
}

// Config is what a Guard is made of.
type Config struct {
	// Store keeps the counts.
	Store limiter.Store

	// Secret keys every name that reaches the store, so that nobody who reads
	// the store can tell or confirm an account. At least 16 bytes; 32 random
	// ones are best. All processes that share a store must share it.
	Secret []byte

	// PreviousSecret, if not nil, is the secret before Secret, while it is being
	// replaced. Each attempt is charged under both at once, so that what was
	// counted before still counts, and processes that have only one of them
	// share their counts with those that have both. Device cookies that it has
	// signed are good until they expire, and signed anew when their device is
	// trusted once more. It can be dropped when the longest window has passed
	// since the last process that had it for its Secret, and [DeviceLifetime]
	// where there are devices.
	PreviousSecret []byte

	// Policies, one an action.
	Policies []Policy

	// Lists of addresses and accounts that are denied or allowed whatever is counted.
	Lists Lists

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

	// Challenger, if not nil, poses and verifies the challenges that rules with
	// effect challenge ask for; see [Challenge] for what they do without.
	Challenger Challenger

	// Observer, if not nil, is told of every decision.
	Observer Observer

	// Recorder, if not nil, is told of every attempt, so that other policies can be
	// tried on what has happened.
	Recorder Recorder

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
		switch {
		case len(c.PreviousSecret) < minSecret:
			return nil, fmt.Errorf("guard: Config.PreviousSecret is %d bytes, want at least %d", len(c.PreviousSecret), minSecret)
		case bytes.Equal(c.PreviousSecret, c.Secret):
			return nil, errors.New("guard: Config.PreviousSecret is the same as Secret")
		}
		secrets = append(secrets, c.PreviousSecret)
	}
	devices, err := newDeviceKeys(secrets...)
	if err != nil {
		return nil, err
	}
	tokens, err := newTokenKey(c.Secret)
	if err != nil {
		return nil, err
	}
	g := &Guard{
		store:     c.Store,
		local:     memstore.New(memstore.Config{Now: c.Now}),
		devices:   devices,
		resolve:   c.Resolve,
		opaque:    c.Opaque,
		observer:  c.Observer,
		now:       c.Now,
		instances: int64(max(1, c.Instances)),

		challenger: c.Challenger,
		tokens:     tokens,
	}
	for _, secret := range secrets {
		h, err := newHasher(secret, "subjects v1")
		if err != nil {
			return nil, err
		}
		g.hashes = append(g.hashes, h)
	}
	g.onceKey = g.hashes[0].key("answers to challenges", onceRule.Name, 0, once.Law())
	if c.Instances > 1 {
		g.unsettled.refused = make([]atomic.Uint64, unsettledSlots)
	}
	if g.now == nil {
		g.now = time.Now
	}
	if g.records, err = newRecords(c.Recorder, c.Secret, g.now); err != nil {
		return nil, err
	}
	if err = g.SetLists(c.Lists); err != nil {
		return nil, err
	}
	fault := func(ctx context.Context, err error) { g.observe(ctx, Event{Kind: Unnoted, Err: err}) }
	if g.index, err = newIndex(c.Store, c.Secret, fault); err != nil {
		return nil, err
	}
	if err := g.SetPolicies(c.Policies); err != nil {
		return nil, err
	}
	warnOfMisuse(c)
	return g, nil
}
