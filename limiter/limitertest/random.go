package limitertest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// randomSequenceCount is for sequences that nothing races with: where the race
// detector slows them down tenfold, fewer do.
var randomSequenceCount = map[bool]int{false: 10_000, true: 2_000}[raced]

// randomSequences does the same to the store and to a map, and compares all
// answers. The clock only goes forward: a store may forget a key that is whole
// again, and only a clock set back could tell.
func randomSequences(r *rig) {
	model := newReference(r.clock.now)
	denials := 0
	for seed := range uint64(randomSequenceCount) {
		s := sequence{rig: r, reference: model, rnd: rand.New(rand.NewPCG(seed, 2)), name: fmt.Sprintf("sequence %d", seed)}
		s.run()
		denials += s.denials
		clear(model.states)
	}
	require.Greater(r.t, denials, randomSequenceCount/2, "too few denials to show anything")
}

type sequence struct {
	*rig
	reference *reference
	rnd       *rand.Rand
	name      string
	receipts  [][2][]limiter.Charge // the store's and the map's
	last      time.Duration         // a wait that was told
	denials   int
}

var smallLimits = []limiter.Limit{
	limiter.SlidingWindow{Limit: 3, Window: time.Second},
	limiter.FixedWindow{Limit: 3, Window: time.Second},
	limiter.TokenBucket{Capacity: 3, Refill: 3, Per: time.Second},
	limiter.SlidingWindowCounter{Limit: 4, Window: time.Second},
}

func (s *sequence) run() {
	ctx := s.t.Context()
	for range 8 {
		if s.rnd.IntN(3) == 0 {
			s.clock.advance([]time.Duration{time.Microsecond, s.last, max(0, s.last-time.Microsecond), 333 * time.Millisecond, time.Second}[s.rnd.IntN(5)])
		}
		charges := s.batch()
		twin := slices.Clone(charges)
		switch p := s.rnd.IntN(10); {
		case p < 6:
			ok, err := s.store.Take(ctx, charges)
			want, wantErr := s.reference.Take(ctx, twin)
			require.Equal(s.t, want, ok, s.name)
			s.compare(charges, twin, err, wantErr)
			s.receipts = append(s.receipts, [2][]limiter.Charge{charges, twin})
			if !ok {
				s.denials++
			}
		case p < 8:
			s.compare(charges, twin, s.store.Peek(ctx, charges), s.reference.Peek(ctx, twin))
		case p < 9 && len(s.receipts) > 0:
			pair := s.receipts[s.rnd.IntN(len(s.receipts))] // once more, perhaps
			require.NoError(s.t, s.reference.Refund(ctx, pair[1]), s.name)
			require.NoError(s.t, s.store.Refund(ctx, pair[0]), s.name)
			require.Equal(s.t, pair[1], pair[0], s.name)
		case s.rnd.IntN(4) == 0:
			require.NoError(s.t, s.reference.Forget(ctx, []string{charges[0].Key}), s.name)
			require.NoError(s.t, s.store.Forget(ctx, []string{charges[0].Key}), s.name)
		}
	}
}

// batch is one to four charges.
func (s *sequence) batch() []limiter.Charge {
	var charges []limiter.Charge
	for _, i := range s.rnd.Perm(len(smallLimits))[:1+s.rnd.IntN(len(smallLimits))] {
		limit := smallLimits[i]
		charges = append(charges, limiter.Charge{
			Key:      s.name + "/" + limit.Law(),
			Limit:    limit,
			Ask:      limiter.Ask{Cost: []int64{1, 1, 1, 1, 2, 2, 3}[s.rnd.IntN(7)]},
			Advisory: []int{0, 0, 0, 1, 1, 2}[s.rnd.IntN(6)],
		})
	}
	return charges
}

func (s *sequence) compare(got, want []limiter.Charge, err, wantErr error) {
	require.NoError(s.t, wantErr, s.name)
	require.NoError(s.t, err, s.name)
	if !slices.Equal(got, want) { // which is much cheaper than the report
		require.Equal(s.t, want, got, s.name)
	}
	for _, c := range want {
		s.last = max(s.last, c.Decision.RetryAfter)
	}
}
