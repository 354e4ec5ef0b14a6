package denycache_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
	"authguard/limiter"
	"authguard/limiter/denycache"
	"authguard/limiter/memstore"
)

// AL-02: whatever happens, in whatever order, through whichever of three instances,
// each decision is the one that the store would give, to the microsecond.
func TestDecisionsAreTheSameWithAndWithout(t *testing.T) {
	sequences := 10_000
	if raced { // nothing races here
		sequences = 2_000
	}
	w := newWorld(t, 3)
	denials := 0
	for seed := range uint64(sequences) {
		denials += w.sequence(seed)
	}
	local := uint64(0)
	for _, s := range w.caches {
		local += s.Stats().Local
	}
	t.Logf("%d denials; %d charges were denied locally", denials, local)
	require.Greater(t, local, uint64(sequences))
	require.Greater(t, denials, int(2*local), "those that the store made")
}

// world is three caches over one store, and beside it a store without any.
type world struct {
	*testing.T
	hub    *hub
	clock  *testkit.Clock
	store  *shared
	plain  *memstore.Store
	caches []*denycache.Store

	rnd      *rand.Rand
	name     string
	limits   []limiter.Limit
	receipts [][2][]limiter.Charge
	waits    []time.Duration
}

func newWorld(t *testing.T, instances int) *world {
	w := &world{T: t, hub: new(hub), clock: testkit.NewClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))}
	w.store = &shared{Store: memstore.New(memstore.Config{Now: w.clock.Now}), hub: w.hub}
	w.plain = memstore.New(memstore.Config{Now: w.clock.Now})
	for i := range instances {
		// Whether charges may still be refunded or not: the channel tells at once.
		settle := []time.Duration{time.Microsecond, time.Microsecond, 20 * time.Millisecond}[i%3]
		w.caches = append(w.caches, open(t, denycache.Config{Store: w.store, Channel: w.hub, Settle: settle, Now: w.clock.Now}))
	}
	return w
}

var numbers = [][]limiter.Limit{
	{
		limiter.SlidingWindow{Limit: 3, Window: time.Second},
		limiter.FixedWindow{Limit: 3, Window: time.Second},
		limiter.TokenBucket{Capacity: 3, Refill: 3, Per: time.Second},
		limiter.LeakyBucket{Capacity: 2, Leak: 1, Per: time.Second},
		limiter.SlidingWindowCounter{Limit: 4, Window: time.Second},
		limiter.Backoff{Free: 1, Base: 300 * time.Millisecond, Factor: 2, Max: 3 * time.Second, LockAfter: 4, Forget: 4 * time.Second, ForgetBeyond: 7 * time.Second},
		limiter.Distinct{Limit: 2, Window: time.Second},
	},
	{ // whatever a store forgets of the first is past for these, too
		limiter.SlidingWindow{Limit: 4, Window: 700 * time.Millisecond},
		limiter.FixedWindow{Limit: 2, Window: 500 * time.Millisecond},
		limiter.TokenBucket{Capacity: 2, Refill: 7, Per: time.Second},
		limiter.LeakyBucket{Capacity: 3, Leak: 2, Per: time.Second},
		limiter.SlidingWindowCounter{Limit: 3, Window: 500 * time.Millisecond},
		limiter.Backoff{Free: 2, Base: 100 * time.Millisecond, Factor: 3, Max: 2 * time.Second, LockAfter: 5, Forget: 3 * time.Second, ForgetBeyond: 5 * time.Second},
		limiter.Distinct{Limit: 3, Window: 500 * time.Millisecond},
	},
}

func (w *world) sequence(seed uint64) (denials int) {
	w.rnd, w.name = rand.New(rand.NewPCG(seed, 3)), fmt.Sprintf("sequence %d", seed)
	w.receipts, w.waits = nil, []time.Duration{time.Millisecond}
	laws := w.rnd.Perm(len(numbers[0]))[:3]
	deploy := func(numbers []limiter.Limit) {
		w.limits = []limiter.Limit{numbers[laws[0]], numbers[laws[1]], numbers[laws[2]]}
	}
	deploy(numbers[0])
	for step := range 40 {
		if step == 25 && seed%2 == 0 {
			deploy(numbers[1]) // at once; see below for a rolling one
			w.receipts = nil
		}
		if w.rnd.IntN(2) == 0 {
			w.forward()
		}
		w.hub.beat(0)
		s := w.caches[w.rnd.IntN(len(w.caches))]
		switch p := w.rnd.IntN(40); {
		case p < 33:
			if !w.take(s) {
				denials++
			}
		case p < 37 && len(w.receipts) > 0:
			w.refund(s)
		case p < 38:
			w.forget(s)
		default:
			w.clock.Advance(time.Second)
		}
	}
	return denials
}

// forward moves the clock to where something may change: a moment on, a wait that
// was told, a microsecond before its end.
func (w *world) forward() {
	wait := w.waits[w.rnd.IntN(len(w.waits))]
	w.clock.Advance([]time.Duration{time.Microsecond, 20 * time.Millisecond, 20 * time.Millisecond, 150 * time.Millisecond, wait, wait - time.Microsecond}[w.rnd.IntN(6)])
}

func (w *world) take(s *denycache.Store) bool {
	charges := w.batch()
	twin := slices.Clone(charges)
	want, wantErr := w.plain.Take(ctx, twin)
	ok, err := s.Take(ctx, charges)
	if wantErr != nil {
		require.ErrorIs(w, wantErr, limiter.ErrCostTooHigh, w.name)
		require.ErrorIs(w, err, limiter.ErrCostTooHigh, w.name)
		return true
	}
	require.NoError(w, err, w.name)
	require.Equal(w, want, ok, w.name)
	require.NoError(w, ask(ctx, w.store, charges), w.name) // what was left unasked
	if !slices.Equal(twin, charges) {
		require.Equal(w, twin, charges, w.name)
	}
	w.receipts = append(w.receipts, [2][]limiter.Charge{charges, twin})
	for _, c := range twin {
		if c.Decision.RetryAfter > 0 {
			w.waits = append(w.waits, c.Decision.RetryAfter)
		}
	}
	return ok
}

func (w *world) refund(s *denycache.Store) {
	pair := w.receipts[w.rnd.IntN(len(w.receipts))]
	if w.rnd.IntN(3) == 0 { // a success
		for i := range pair[0] {
			if _, ok := pair[0][i].Limit.(limiter.SuccessClearer); ok {
				pair[0][i].Cost, pair[1][i].Cost = limiter.MaxLimit, limiter.MaxLimit
			}
		}
	}
	require.NoError(w, w.plain.Refund(ctx, pair[1]), w.name)
	require.NoError(w, s.Refund(ctx, pair[0]), w.name)
	require.Equal(w, pair[1], pair[0], w.name)
}

func (w *world) forget(s *denycache.Store) {
	keys := []string{w.key(w.limits[w.rnd.IntN(len(w.limits))])}
	require.NoError(w, w.plain.Forget(ctx, keys), w.name)
	require.NoError(w, s.Forget(ctx, keys), w.name)
}

func (w *world) key(l limiter.Limit) string { return w.name + l.Law() }

func (w *world) batch() []limiter.Charge {
	var charges []limiter.Charge
	for _, i := range w.rnd.Perm(len(w.limits))[:1+w.rnd.IntN(len(w.limits))] {
		limit := w.limits[i]
		c := some(w.key(limit), limit, []int64{1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 5}[w.rnd.IntN(11)])
		if w.rnd.IntN(8) == 0 {
			c.Advisory = 1
		}
		if _, ok := limit.(limiter.Distinct); ok {
			c.Member = limiter.Member(fmt.Sprint(w.rnd.IntN(6)))
		}
		charges = append(charges, c)
	}
	return charges
}

// In a rolling deploy, instances with other numbers share keys. What one of them
// charges can shorten a wait of the others, which find out within ten seconds: so
// none admits what its store would not.
func TestARollingDeployNeverAdmitsMore(t *testing.T) {
	w := newWorld(t, 2)
	var strict, asked int
	for seed := range uint64(2000) {
		w.rnd, w.name = rand.New(rand.NewPCG(seed, 4)), fmt.Sprintf("sequence %d", seed)
		since := map[string]time.Time{} // from when on an instance denies what its store admits
		for range 60 {
			w.clock.Advance([]time.Duration{0, time.Millisecond, 100 * time.Millisecond, time.Second, 4 * time.Second}[w.rnd.IntN(5)])
			w.hub.beat(0)
			n, i := w.rnd.IntN(2), w.rnd.IntN(6)
			limit := []limiter.Limit{
				limiter.SlidingWindow{Limit: int64(3 + 2*n), Window: time.Minute},
				limiter.FixedWindow{Limit: 3, Window: []time.Duration{time.Minute, 5 * time.Second}[n]},
				limiter.TokenBucket{Capacity: 3, Refill: []int64{1, 50}[n], Per: time.Minute},
				limiter.SlidingWindowCounter{Limit: 3, Window: []time.Duration{time.Minute, 5 * time.Second}[n]},
				limiter.SlidingWindow{Limit: 3, Window: []time.Duration{time.Minute, 10 * time.Second}[n]},
				limiter.LeakyBucket{Capacity: int64(2 + n), Leak: 1, Per: 20 * time.Second},
			}[i]
			c := []limiter.Charge{one(fmt.Sprint(w.name, i), limit)}
			look := slices.Clone(c)
			require.NoError(t, w.store.Peek(ctx, look))
			ok, err := w.caches[n].Take(ctx, c)
			require.NoError(t, err)
			id := fmt.Sprint(n, c[0].Key)
			switch asked++; {
			case ok:
				require.True(t, look[0].Decision.Allowed, "%s: admitted %v", w.name, limit)
			case look[0].Decision.Allowed:
				if strict++; since[id].IsZero() {
					since[id] = w.clock.Now()
				}
				require.Less(t, w.clock.Now().Sub(since[id]), 10*time.Second, "%s: %v", w.name, limit)
				continue
			}
			delete(since, id)
			if ok && w.rnd.IntN(3) == 0 {
				require.NoError(t, w.caches[n].Refund(ctx, c))
			}
		}
	}
	t.Logf("%d of %d were denied for what was told before", strict, asked)
	require.NotZero(t, strict, "the numbers are too alike to show anything")
}

// The clock of the store, which is another machine's, may be set: back, and waits
// that were told begin anew there; forward, and what is free is found out within
// ten seconds.
func TestTheStoresClockMayBeSet(t *testing.T) {
	for _, step := range []time.Duration{-time.Hour, -30 * time.Second, -time.Second, time.Second, 30 * time.Second, time.Hour} {
		r := newRig(t)
		offset := time.Duration(0)
		r.shared.Store = memstore.New(memstore.Config{Now: func() time.Time { return r.clock.Now().Add(offset) }})
		minute := limiter.SlidingWindow{Limit: 5, Window: time.Minute}
		r.exhaust(r, one("k", minute))
		r.local(r, one("k", minute))
		offset = step
		free := 0
		for range 3 * 60 * 10 {
			look := []limiter.Charge{one("k", minute)}
			require.NoError(t, r.shared.Peek(ctx, look))
			ok, err := r.Take(ctx, []limiter.Charge{one("k", minute)})
			require.NoError(t, err)
			if ok {
				require.True(t, look[0].Decision.Allowed)
				break
			}
			if look[0].Decision.Allowed {
				free++
			}
			r.after(100 * time.Millisecond)
		}
		require.LessOrEqual(t, free, 100, "set by %v: denied for %d tenths of a second", step, free)
		if step < 0 {
			require.Zero(t, free)
		}
	}
}
