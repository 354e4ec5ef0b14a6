package limiter_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// One key over random histories of checks and blocks of many lengths, under a clock
// that is set back and forward, against the one number that a block is.
func TestBlockPromises(t *testing.T) {
	lengths := []time.Duration{0, 0, time.Millisecond, time.Second, time.Hour, time.Hour + time.Microsecond, limiter.MaxBlock}
	rnd := rand.New(rand.NewPCG(7, 7))
	var denied, shorter, lengthened, steps int
	for range 300 {
		var state []byte
		now, until := t0, int64(0)
		for range 200 {
			l := limiter.Block{For: lengths[rnd.IntN(len(lengths))]}
			d, next, err := limiter.Decide(l, []byte("before"), state, now, limiter.Ask{Cost: 1})
			require.NoError(t, err)
			require.Equal(t, "before", string(next[:6]))
			next = next[6:]
			end := now + us(l.For)
			require.Equal(t, end >= until, d.Allowed)
			require.EqualValues(t, 1, d.Limit)
			require.Equal(t, now, d.At)
			switch {
			case !d.Allowed:
				require.Empty(t, next, "promise 2: a denial writes nothing")
				require.Equal(t, until-end, us(d.RetryAfter))
				require.Equal(t, until-now, us(d.ResetAfter))
				require.Zero(t, d.Remaining)
				early, _, _ := limiter.Decide(l, nil, state, now+us(d.RetryAfter)-1, limiter.Ask{Cost: 1})
				require.False(t, early.Allowed, "promise 3")
				then, _, _ := limiter.Decide(l, nil, state, now+us(d.RetryAfter), limiter.Ask{Cost: 1})
				require.True(t, then.Allowed, "promise 3")
				if denied++; l.For > 0 {
					shorter++
				}
			case l.For == 0:
				require.Empty(t, next, "a check writes nothing")
				require.Zero(t, d.RetryAfter, "promise 1")
			default:
				require.Len(t, next, 8)
				require.Equal(t, us(l.For), us(d.ResetAfter))
				if until > now && end > until {
					lengthened++
				}
				state, until = next, end
			}
			looked, wrote, err := limiter.Decide(l, nil, state, now, limiter.Ask{})
			require.NoError(t, err)
			require.True(t, looked.Allowed)
			require.Empty(t, wrote)
			require.Equal(t, until > now, looked.Remaining == 0)
			after, _, _ := limiter.Decide(limiter.Block{}, nil, state, now+us(looked.ResetAfter), limiter.Ask{Cost: 1})
			require.True(t, after.Allowed, "promise 5: the key may be forgotten then")
			left, err := l.Refund(nil, state, now, d.At, limiter.Ask{Cost: 1})
			require.NoError(t, err)
			require.Equal(t, string(state), string(left), "promise 6: there is nothing to give back")

			switch rnd.IntN(6) {
			case 0:
				now += us(d.RetryAfter) - int64(rnd.IntN(2))
			case 1:
				now += us(d.ResetAfter)
			case 2:
				now += rnd.Int64N(us(2 * time.Hour))
			case 3:
				now -= rnd.Int64N(us(time.Hour)) // what is blocked stays so
				steps++
			case 4:
				state, until = nil, 0 // forgotten
			}
		}
	}
	for _, n := range []int{denied, shorter, lengthened, steps} {
		require.Greater(t, n, 100)
	}
}

func TestBlockRefusesWhatCannotBe(t *testing.T) {
	for _, d := range []time.Duration{-1, -time.Hour, 1, time.Millisecond - 1, time.Second + 1, limiter.MaxBlock + time.Microsecond, math.MaxInt64} {
		require.ErrorContains(t, limiter.Block{For: d}.Validate(), "Block.For")
		_, _, err := limiter.Decide(limiter.Block{For: d}, nil, nil, t0, limiter.Ask{Cost: 1})
		require.Error(t, err)
	}
	_, _, err := limiter.Decide(limiter.Block{}, nil, nil, t0, limiter.Ask{Cost: limiter.MaxLimit + 1})
	require.ErrorIs(t, err, limiter.ErrCostTooHigh)
	for _, state := range []string{"1", "1234567", "123456789", "\xff\xff\xff\xff\xff\xff\xff\xff", "\x00\x20\x00\x00\x00\x00\x00\x00"} {
		_, _, err := limiter.Decide(limiter.Block{}, nil, []byte(state), t0, limiter.Ask{Cost: 1})
		require.ErrorIs(t, err, limiter.ErrState)
		_, err = limiter.Block{}.Refund(nil, []byte(state), t0, t0, limiter.Ask{Cost: 1})
		require.ErrorIs(t, err, limiter.ErrState)
	}
	for _, now := range []int64{-1, 1 << 53} {
		_, _, err := limiter.Decide(limiter.Block{For: time.Hour}, nil, nil, now, limiter.Ask{Cost: 1})
		require.Error(t, err)
	}
}
