package limitertest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// clock is set by hand. Reading it may move it on.
type clock struct {
	micros   atomic.Int64 // since start
	tick     atomic.Int64 // that each reading adds
	readings atomic.Int64
}

func (c *clock) now() time.Time {
	c.readings.Add(1)
	tick := c.tick.Load()
	return start.Add(micros(c.micros.Add(tick) - tick))
}

func (c *clock) set(at time.Duration)    { c.micros.Store(at.Microseconds()) }
func (c *clock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// rig is a store with its clock.
type rig struct {
	t     *testing.T
	store limiter.Store
	clock *clock

	// compensating says that the store may deny what it could admit, and hold units
	// for a moment, while others are under way.
	compensating bool
}

func newRig(t *testing.T, open func(t *testing.T, now func() time.Time) limiter.Store) *rig {
	t.Helper()
	c := new(clock)
	return &rig{t: t, store: open(t, c.now), clock: c}
}

// one is a charge of cost 1.
func one(key string, limit limiter.Limit) limiter.Charge { return some(key, limit, 1) }

func some(key string, limit limiter.Limit, cost int64) limiter.Charge {
	return limiter.Charge{Key: key, Limit: limit, Ask: limiter.Ask{Cost: cost}}
}

// take is Take, which must not fail, and whose answer must fit its charges.
func (r *rig) take(charges ...limiter.Charge) (bool, []limiter.Charge) {
	r.t.Helper()
	ok, err := r.store.Take(r.t.Context(), charges)
	require.NoError(r.t, err)
	for i, c := range charges {
		require.Equalf(r.t, c.Decision.RetryAfter == 0, c.Decision.Allowed, "charge %d: RetryAfter %v", i, c.Decision.RetryAfter)
		require.Equalf(r.t, r.clock.now().UnixMicro(), c.Decision.At, "charge %d: At", i)
		if c.Advisory == 0 {
			require.Equalf(r.t, ok, c.Taken, "charge %d: Taken", i)
		}
		if c.Taken {
			require.Truef(r.t, ok && c.Decision.Allowed, "charge %d is Taken", i)
		}
	}
	return ok, charges
}

func (r *rig) admitted(charges ...limiter.Charge) []limiter.Charge {
	r.t.Helper()
	ok, charges := r.take(charges...)
	require.True(r.t, ok, "denied")
	return charges
}

func (r *rig) denied(charges ...limiter.Charge) []limiter.Charge {
	r.t.Helper()
	ok, charges := r.take(charges...)
	require.False(r.t, ok, "admitted")
	return charges
}

func (r *rig) refund(charges []limiter.Charge) {
	r.t.Helper()
	require.NoError(r.t, r.store.Refund(r.t.Context(), charges))
	for i, c := range charges {
		require.Falsef(r.t, c.Taken, "charge %d is still Taken after its refund", i)
	}
}

func (r *rig) peek(charge limiter.Charge) limiter.Decision {
	r.t.Helper()
	charges := []limiter.Charge{charge}
	require.NoError(r.t, r.store.Peek(r.t.Context(), charges))
	require.Equal(r.t, charge.Taken, charges[0].Taken, "Peek changed Taken")
	return charges[0].Decision
}

func (r *rig) remaining(key string, limit limiter.Limit) int64 {
	r.t.Helper()
	return r.peek(one(key, limit)).Remaining
}
