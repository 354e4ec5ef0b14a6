package guardtest

import (
	"sync/atomic"
	"time"
)

// A Counter counts comparisons of a secret. The verifier of an application under
// test calls Add where it compares the secret of the account that is attacked; a
// dummy that is compared for a name that nobody has is no comparison. Its zero
// value is ready, for any number of goroutines.
type Counter struct{ n atomic.Int64 }

// meeting is how long a comparison takes at least, about as a slow hash does.
const meeting = 10 * time.Millisecond

// Add counts one comparison. It takes a while, as a slow hash does, so that
// attempts in flight at one time really meet: a verifier that is done at once
// would hide that a handler charges too late.
func (c *Counter) Add() {
	c.n.Add(1)
	time.Sleep(meeting)
}

// Count is how many comparisons there were: a [Target]'s Verified.
func (c *Counter) Count() int64 { return c.n.Load() }
