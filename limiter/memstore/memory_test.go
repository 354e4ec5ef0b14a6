package memstore_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

var ctx = context.Background()

func newClock() *testkit.Clock { return testkit.NewClock(time.Unix(1_800_000_000, 0)) }

func hit(t testing.TB, s limiter.Store, key string, limit limiter.Limit, cost int64) bool {
	t.Helper()
	ok, err := s.Take(ctx, []limiter.Charge{{Key: key, Limit: limit, Ask: limiter.Ask{Cost: cost}}})
	require.NoError(t, err)
	return ok
}

var five = limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}

// ME-01, ME-02: what is whole again can be swept away entirely, and the sweep
// never holds a lock for long.
func TestSweepLeavesNothingBehind(t *testing.T) {
	c := newClock()
	s := memstore.New(memstore.Config{Now: c.Now})
	for i := range 100_000 {
		require.True(t, hit(t, s, fmt.Sprint(i), five, int64(1+i%5)))
	}
	require.Equal(t, 100_000, s.Stats().Keys)
	c.Advance(15*time.Minute - time.Second)
	s.Sweep()
	require.Equal(t, 100_000, s.Stats().Keys, "nothing is swept before its time")
	c.Advance(2 * time.Second)
	s.Sweep()
	require.Zero(t, s.Stats().Keys)
	require.Less(t, s.Stats().Bytes, 200_000, "the memory is given back, but for a small table a shard")
	require.True(t, hit(t, s, "again", five, 5))
	require.False(t, hit(t, s, "again", five, 1))
}

// Writes alone keep the table free of keys that are whole again.
func TestWritesSweep(t *testing.T) {
	c := newClock()
	s := memstore.New(memstore.Config{Now: c.Now})
	limit := limiter.FixedWindow{Limit: 5, Window: time.Second}
	for i := range 200_000 {
		hit(t, s, fmt.Sprint(i), limit, 1)
		c.Advance(10 * time.Millisecond)
	}
	require.Less(t, s.Stats().Keys, 10_000, "some 200 are live at any time")
}

// ME-03: invented keys without end stay within the bound.
func TestMemoryIsBounded(t *testing.T) {
	c := newClock()
	for name, limit := range map[string]limiter.Limit{
		"constant": limiter.FixedWindow{Limit: 100, Window: 24 * time.Hour},
		"window":   five,
		"large":    limiter.SlidingWindow{Limit: 1000, Window: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			bound, n := 256<<10, 50_000 // twenty times what there is room for
			if name == "large" {
				bound, n = 1<<20, 20_000
			}
			s := memstore.New(memstore.Config{MaxBytes: int64(bound), Now: c.Now})
			for i := range n {
				cost := int64(1 + i%4)
				if name == "large" {
					cost *= 200
				}
				require.True(t, hit(t, s, fmt.Sprint(i), limit, cost))
				if i%10_000 == 0 {
					require.LessOrEqual(t, s.Stats().Bytes, bound)
				}
			}
			stats := s.Stats()
			require.LessOrEqual(t, stats.Bytes, bound)
			require.NotZero(t, stats.Evicted)
			require.Zero(t, stats.Full)
		})
	}
}

// A flood of invented names sets neither a denying nor a half-used key free,
// and locks nobody else out.
func TestAFloodFreesNobodyAndLocksOutNobody(t *testing.T) {
	s := memstore.New(memstore.Config{MaxBytes: 1 << 20, Now: newClock().Now})
	for i := range 500 {
		require.True(t, hit(t, s, fmt.Sprint("blocked", i), five, 5))
		require.True(t, hit(t, s, fmt.Sprint("half", i), five, 3))
	}
	for i := range 100_000 {
		require.True(t, hit(t, s, fmt.Sprint("invented", i), five, 1), "somebody else is locked out")
	}
	for i := range 500 {
		require.False(t, hit(t, s, fmt.Sprint("blocked", i), five, 1), "a blocked key is free")
		require.False(t, hit(t, s, fmt.Sprint("half", i), five, 3), "a half-used key is free")
	}
}

func TestFullOfDenyingKeysIsAnError(t *testing.T) {
	c := newClock()
	s := memstore.New(memstore.Config{MaxBytes: 64 << 10, Now: c.Now})
	take := func(key string) (bool, error) {
		return s.Take(ctx, []limiter.Charge{
			{Key: key, Limit: limiter.FixedWindow{Limit: 1, Window: time.Minute}, Ask: limiter.Ask{Cost: 1}},
			{Key: key + "'", Limit: limiter.FixedWindow{Limit: 1, Window: time.Minute}, Ask: limiter.Ask{Cost: 1}},
		})
	}
	n := 0
	for ; ; n++ {
		ok, err := take(fmt.Sprint(n))
		if err != nil {
			require.ErrorIs(t, err, memstore.ErrFull)
			require.False(t, ok)
			break
		}
		require.True(t, ok)
		require.Less(t, n, 10_000)
	}
	require.NotZero(t, s.Stats().Full)
	keys := s.Stats().Keys
	for i := range n {
		ok, err := take(fmt.Sprint(i))
		require.NoError(t, err)
		require.False(t, ok, "no key was dropped")
	}
	_, err := take(fmt.Sprint(n))
	require.ErrorIs(t, err, memstore.ErrFull)
	require.Equal(t, keys, s.Stats().Keys, "nothing of the failed batch stays")

	c.Advance(time.Minute)
	ok, err := take(fmt.Sprint(n))
	require.NoError(t, err)
	require.True(t, ok, "keys that are whole again make room")
}

// Where no large state fits, a failed try leaves nothing behind.
func TestATryThatFailsLeavesNothing(t *testing.T) {
	s := memstore.New(memstore.Config{MaxBytes: 128 << 10, Now: newClock().Now})
	limit := limiter.SlidingWindow{Limit: 1000, Window: time.Hour}
	require.True(t, hit(t, s, "first", limit, 1000))
	require.True(t, hit(t, s, "second", limit, 1000))
	keys := s.Stats().Keys
	for _, batch := range [][]limiter.Charge{
		{{Key: "third", Limit: limit, Ask: limiter.Ask{Cost: 1000}}},
		{{Key: "fourth", Limit: five, Ask: limiter.Ask{Cost: 1}}, {Key: "fifth", Limit: limit, Ask: limiter.Ask{Cost: 1000}}},
	} {
		_, err := s.Take(ctx, batch)
		require.ErrorIs(t, err, memstore.ErrFull)
		require.Equal(t, keys, s.Stats().Keys)
	}
	require.True(t, hit(t, s, "fourth", five, 5))
}

// A state moves between its places and is never lost on the way.
func TestStatesGrowAndShrink(t *testing.T) {
	c := newClock()
	s := memstore.New(memstore.Config{Now: c.Now})
	limit := limiter.SlidingWindow{Limit: 1000, Window: time.Hour}
	charges := make([][]limiter.Charge, 1000)
	for i := range charges {
		charges[i] = []limiter.Charge{{Key: "k", Limit: limit, Ask: limiter.Ask{Cost: 1}}}
		ok, err := s.Take(ctx, charges[i])
		require.NoError(t, err)
		require.True(t, ok)
		require.EqualValues(t, 999-i, charges[i][0].Decision.Remaining)
		c.Advance(time.Microsecond)
	}
	require.False(t, hit(t, s, "k", limit, 1))
	for i := range charges {
		require.NoError(t, s.Refund(ctx, charges[i]))
		look := []limiter.Charge{{Key: "k", Limit: limit, Ask: limiter.Ask{Cost: 1}}}
		require.NoError(t, s.Peek(ctx, look))
		require.EqualValues(t, i+1, look[0].Decision.Remaining)
	}
	require.Zero(t, s.Stats().Keys)
}

func TestKeysOfAnySizeAreKeptApart(t *testing.T) {
	s := memstore.New(memstore.Config{Now: newClock().Now})
	for _, key := range []string{"", "\x00", "\x00\x00", " ", "\n", strings.Repeat("a", 1<<20), strings.Repeat("a", 1<<20-1)} {
		require.True(t, hit(t, s, key, five, 5), "%.10q", key)
		require.False(t, hit(t, s, key, five, 1), "%.10q", key)
	}
	require.Less(t, s.Stats().Bytes, 1<<20)
}

func TestProcessClockIsTheTimeOfDay(t *testing.T) {
	s := memstore.New(memstore.Config{})
	before := time.Now()
	charges := []limiter.Charge{{Key: "k", Limit: five, Ask: limiter.Ask{Cost: 1}}}
	_, err := s.Take(ctx, charges)
	require.NoError(t, err)
	require.WithinRange(t, charges[0].Decision.Time(), before.Truncate(time.Microsecond).Add(-time.Millisecond), time.Now().Add(time.Millisecond))
}

// A streak that has used its free failures denies for a while, and admits again:
// it must not be kept at all costs for the weeks until it is forgotten. Else a
// slow flood of names with a few failures each would fill the store with keys
// that nothing may drop.
func TestOnlyWhatDeniesIsKeptAtAllCosts(t *testing.T) {
	c := newClock()
	s := memstore.New(memstore.Config{MaxBytes: 128 << 10, Now: c.Now})
	streak := limiter.Backoff{Free: 10, Base: 30 * time.Second, Factor: 2, Max: time.Hour, LockAfter: 80, Forget: 7 * 24 * time.Hour, ForgetBeyond: 90 * 24 * time.Hour}
	for i := range 5_000 {
		require.True(t, hit(t, s, fmt.Sprint(i), streak, 10))
		c.Advance(time.Minute)
	}
	require.NotZero(t, s.Stats().Evicted)
	require.Zero(t, s.Stats().Full)

	// One that is locked stays.
	for range 79 {
		hit(t, s, "locked", streak, 1)
		c.Advance(time.Hour)
	}
	require.True(t, hit(t, s, "locked", streak, 1))
	for i := range 5_000 {
		hit(t, s, fmt.Sprint("more", i), streak, 10)
		c.Advance(time.Minute)
	}
	require.False(t, hit(t, s, "locked", streak, 1))
}

// A clock beyond what a slot's seconds can tell forgets nothing.
func TestClocksFarAheadForgetNothing(t *testing.T) {
	for _, year := range []int{2105, 2106, 2107, 2200, 2254} {
		c := testkit.NewClock(time.Date(year, 2, 7, 6, 0, 0, 0, time.UTC))
		s := memstore.New(memstore.Config{Now: c.Now})
		admitted := 0
		for i := range 200 {
			if hit(t, s, "k", five, 1) {
				admitted++
			}
			hit(t, s, fmt.Sprint(i), five, 1) // writes sweep
		}
		require.Equal(t, 5, admitted, "in %d", year)
	}
}

// Neither one charge, nor a login's, nor its refund takes memory.
func TestChargesAllocateNothing(t *testing.T) {
	for _, n := range []int{1, 3, 9} {
		s := memstore.New(memstore.Config{})
		charges := make([]limiter.Charge, n)
		for i := range charges {
			charges[i] = limiter.Charge{Key: fmt.Sprint(i), Limit: allLaws[i%len(allLaws)], Ask: limiter.Ask{Cost: 1, Member: limiter.Member("m")}}
		}
		for _, give := range []bool{true, false} { // the latter until they deny
			require.Zero(t, testing.AllocsPerRun(100, func() {
				if _, err := s.Take(ctx, charges); err != nil {
					t.Fatal(err)
				}
				if give {
					if err := s.Refund(ctx, charges); err != nil {
						t.Fatal(err)
					}
				}
			}), "%d charges, refunds: %v", n, give)
		}
	}
}
