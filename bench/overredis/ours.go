package overredis

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/redis/go-redis/v9"

	"authguard/limiter"
	"authguard/limiter/redisstore"
)

// fives is how many checks are sent with the same keys: as many as the exact
// window admits.
const fives = 5

// The three limits of a check: an exact window, which decides, and two of other
// laws that are too wide to.
var (
	window  = limiter.SlidingWindow{Limit: fives, Window: 900 * time.Second}
	counter = limiter.SlidingWindowCounter{Limit: limiter.MaxLimit, Window: time.Hour}
	bucket  = limiter.TokenBucket{Capacity: limiter.MaxLimit, Refill: 1, Per: time.Second}
	three   = []limiter.Limit{window, counter, bucket}
)

// key is as long as those of package guard, 29 bytes. rule says of which limit.
func key(rule byte, caller, id int) string {
	b := [29]byte{0: 'a', 1: 'g', 2: ':', 3: '{', 20: '}', 21: rule}
	hex.Encode(b[4:20], []byte{
		byte(caller >> 24), byte(caller >> 16), byte(caller >> 8), byte(caller),
		byte(id >> 24), byte(id >> 16), byte(id >> 8), byte(id),
	})
	copy(b[22:], "1234567")
	return string(b[:])
}

// A pace says which keys the n-th check of a caller is about.
type pace struct {
	id   func(n int) int
	full bool // the keys' windows are filled before anything is measured
}

// fresh takes new keys after every five checks, all of which are admitted.
var fresh = pace{id: func(n int) int { return n / fives }}

// exhausted goes round a few keys that have nothing left.
var exhausted = pace{id: func(n int) int { return n % exhaustedKeys }, full: true}

const exhaustedKeys = 4

// ours is how a caller asks our store about limits.
func ours(store limiter.Store, limits []limiter.Limit, caller int, ids pace) check {
	ctx := context.Background()
	charges := make([]limiter.Charge, len(limits))
	for i, l := range limits {
		charges[i] = limiter.Charge{Limit: l, Ask: limiter.Ask{Cost: 1}}
	}
	return func(n int) (bool, error) {
		id := ids.id(n)
		for i := range charges {
			charges[i].Key = key('a'+byte(i), caller, id)
		}
		return store.Take(ctx, charges)
	}
}

// together gives all callers one store, which has them share round trips.
func together(client *redis.Client, callers int) ([]limiter.Store, error) {
	return stores(client, callers, 1)
}

// apart gives each caller a store, so that each sends for itself.
func apart(client *redis.Client, callers int) ([]limiter.Store, error) {
	return stores(client, callers, callers)
}

// stores gives callers so many stores in turn.
func stores(client *redis.Client, callers, n int) ([]limiter.Store, error) {
	all := make([]limiter.Store, callers)
	for i := range all {
		if i >= n {
			all[i] = all[i-n]
			continue
		}
		// A benchmark on a busy machine is no reason to give a call up.
		store, err := redisstore.New(redisstore.Config{Client: client, Timeout: time.Minute})
		if err != nil {
			return nil, err
		}
		all[i] = store
	}
	return all, nil
}
