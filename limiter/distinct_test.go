package limiter_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

var spraying = limiter.Distinct{Limit: 10, Window: time.Hour}

func TestDistinctCountsMembersAndNotAsks(t *testing.T) {
	var state []byte
	for i := range 10 {
		for range 3 { // a known member is free
			var d limiter.Decision
			d, state = one(t, spraying, state, t0, limiter.Member(fmt.Sprint(i)))
			require.True(t, d.Allowed)
			require.EqualValues(t, 9-i, d.Remaining)
		}
	}
	d, _ := one(t, spraying, state, t0+us(time.Minute), limiter.Member("new"))
	require.False(t, d.Allowed)
	require.Equal(t, 59*time.Minute, d.RetryAfter)
	d, _ = one(t, spraying, state, t0+us(time.Minute), limiter.Member("3"))
	require.True(t, d.Allowed, "a known member goes on")
	d, _ = one(t, spraying, state, t0+us(time.Hour)-1, limiter.Member("new"))
	require.False(t, d.Allowed)
	d, _ = one(t, spraying, state, t0+us(time.Hour), limiter.Member("new"))
	require.True(t, d.Allowed)
}

func TestDistinctRefunds(t *testing.T) {
	alice, bob := limiter.Member("alice"), limiter.Member("bob")
	first, state := one(t, spraying, nil, t0, alice)
	again, state2 := one(t, spraying, state, t0+1, alice)

	// Our own fault takes a member out only if this charge brought it in.
	back, err := spraying.Refund(nil, state, t0, first.At, limiter.Ask{Cost: 1, Member: alice})
	require.NoError(t, err)
	require.Empty(t, back)
	back, err = spraying.Refund(nil, state2, t0+1, again.At, limiter.Ask{Cost: 1, Member: alice})
	require.NoError(t, err)
	require.Equal(t, state2, back)

	// A success takes it out, and nobody else.
	_, state3 := one(t, spraying, state2, t0+2, bob)
	back, err = spraying.Refund(nil, state3, t0+2, again.At, limiter.Ask{Cost: limiter.MaxLimit, Member: alice})
	require.NoError(t, err)
	d, _ := one(t, spraying, back, t0+2, bob)
	require.EqualValues(t, 9, d.Remaining, "bob is still in it")
	d, _ = one(t, spraying, back, t0+2, alice)
	require.EqualValues(t, 8, d.Remaining, "alice is new")
}

// Random histories against a map: never more than Limit different members in
// any window, the wait exact, and whole again from ResetAfter on.
func TestDistinctModel(t *testing.T) {
	denials := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 9))
		l := limiter.Distinct{Limit: 1 + r.Int64N(8), Window: time.Duration(1+r.IntN(100)) * time.Second}
		members := make([]string, l.Limit+3)
		for i := range members {
			members[i] = limiter.Member(fmt.Sprint(seed, i))
		}
		touched := map[string]int64{}
		var state []byte
		now, reset := t0, time.Duration(0)
		for range 400 {
			m := members[r.IntN(len(members))]
			live := 0
			for _, at := range touched {
				if at+us(l.Window) > now {
					live++
				}
			}
			at, seen := touched[m]
			known := seen && at+us(l.Window) > now
			before := slices.Clone(state)
			d, next := one(t, l, state, now, m)
			require.Equal(t, before, state, "the old state is not written")
			require.Equal(t, known || int64(live) < l.Limit, d.Allowed, "seed %d", seed)
			if d.Allowed {
				touched[m] = now
				reset = l.Window
				if r.IntN(6) == 0 {
					var err error
					next, err = l.Refund(nil, next, now, d.At, limiter.Ask{Cost: limiter.MaxLimit, Member: m})
					require.NoError(t, err)
					delete(touched, m)
				}
			} else {
				denials++
				require.Zero(t, d.Remaining)
				early, _ := one(t, l, state, now+us(d.RetryAfter)-1, m)
				require.False(t, early.Allowed)
				then, _ := one(t, l, state, now+us(d.RetryAfter), m)
				require.True(t, then.Allowed)
			}
			state = next
			look, none, err := limiter.Decide(l, nil, state, now+us(reset), limiter.Ask{})
			require.NoError(t, err)
			require.Empty(t, none)
			require.Equal(t, l.Limit, look.Remaining, "whole again")
			require.LessOrEqual(t, len(state), 16*int(l.Limit))
			now += r.Int64N(us(l.Window) / 4)
		}
	}
	require.Greater(t, denials, 1000)
}

// In a rolling deploy each set of numbers finds all that stands.
func TestDistinctOldAndNewNumbersInTurns(t *testing.T) {
	old, young := limiter.Distinct{Limit: 6, Window: time.Hour}, limiter.Distinct{Limit: 3, Window: time.Minute}
	var state []byte
	now := t0
	var brought []int64
	for i := range 600 {
		l := old
		if i%2 == 0 {
			l = young
		}
		d, next := one(t, l, state, now, limiter.Member(fmt.Sprint(i)))
		standing := 0
		for _, at := range brought {
			if at+us(l.Window) > now {
				standing++
			}
		}
		require.Equal(t, int64(standing) < l.Limit, d.Allowed, "attempt %d under %v, %d stand", i, l, standing)
		if d.Allowed {
			brought = append(brought, now)
		}
		state = next
		now += us(7 * time.Second)
	}
}

func TestDistinctNumbersMembersAndGarbage(t *testing.T) {
	require.EqualError(t, limiter.Distinct{Window: time.Hour}.Validate(), "limiter: Distinct.Limit is 0, want 1 to 1000")
	require.EqualError(t, limiter.Distinct{Limit: 1001, Window: time.Hour}.Validate(), "limiter: Distinct.Limit is 1001, want 1 to 1000")
	require.Error(t, limiter.Distinct{Limit: 1}.Validate())
	_, _, err := limiter.Decide(spraying, nil, nil, t0, limiter.Ask{Cost: 1, Member: "alice"})
	require.EqualError(t, err, "limiter: Ask.Member is 5 bytes, want 8; limiter.Member makes it of a text")
	_, _, err = limiter.Decide(limiter.Distinct{}, nil, nil, t0, limiter.Ask{Cost: 1})
	require.EqualError(t, err, "limiter: Distinct.Limit is 0, want 1 to 1000")
	_, err = spraying.Refund(nil, []byte("garbage"), t0, t0, limiter.Ask{Cost: 1, Member: limiter.Member("x")})
	require.ErrorIs(t, err, limiter.ErrState)
	_, _, err = limiter.Decide(spraying, nil, nil, -1, limiter.Ask{Cost: 1, Member: limiter.Member("x")})
	require.ErrorContains(t, err, "the clock says -1")
	require.Equal(t, "10 different per 1h0m0s", spraying.String())
	r := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		b := make([]byte, r.IntN(5)*16)
		for i := range b {
			b[i] = byte(r.Uint32() >> r.IntN(32))
		}
		d, _, err := limiter.Decide(spraying, nil, b, t0, limiter.Ask{Cost: 1, Member: limiter.Member("x")})
		if err != nil {
			require.ErrorIs(t, err, limiter.ErrState)
			continue
		}
		require.GreaterOrEqual(t, d.RetryAfter, time.Duration(0))
		require.LessOrEqual(t, d.ResetAfter, time.Hour)
	}
}
