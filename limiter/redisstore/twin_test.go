package redisstore_test

import (
	_ "embed"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
)

const day = 24 * time.Hour

var twins = []limiter.Scripted{
	limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Second},
	limiter.TokenBucket{Capacity: 7, Refill: 3, Per: time.Second},
	limiter.TokenBucket{Capacity: 1_000_000, Refill: 999_983, Per: 30*day + 7*time.Microsecond},
	limiter.TokenBucket{Capacity: 1_000_000, Refill: 1_000_000, Per: time.Millisecond},
	limiter.TokenBucket{Capacity: 1, Refill: 1, Per: 31 * day},
	limiter.LeakyBucket{Capacity: 5, Leak: 7, Per: time.Minute},
	limiter.LeakyBucket{Capacity: 999_979, Leak: 999_983, Per: 31 * day},
	limiter.FixedWindow{Limit: 5, Window: time.Minute},
	limiter.FixedWindow{Limit: 999_983, Window: 31 * day},
	limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute},
	limiter.SlidingWindow{Limit: 100, Window: time.Second},
	limiter.SlidingWindow{Limit: 1, Window: time.Millisecond},
	limiter.SlidingWindowCounter{Limit: 100, Window: time.Hour},
	limiter.SlidingWindowCounter{Limit: 999_983, Window: 31 * day / 2},
	limiter.SlidingWindowCounter{Limit: 1_000_000, Window: time.Millisecond},
	limiter.Backoff{Free: 3, Base: time.Second, Factor: 3, Max: time.Hour, LockAfter: 9, Forget: time.Hour, ForgetBeyond: 10 * day},
	limiter.Backoff{Free: 1_000, Base: time.Millisecond, Factor: 1, Max: time.Second, Forget: time.Hour, ForgetBeyond: 366 * day},
	limiter.Distinct{Limit: 5, Window: time.Minute},
	limiter.Block{},
	limiter.Block{For: 366 * day},
}

// A driver runs a twin over a whole history in one call of the server: from
// state to state, returning for each step all that the twin said.
const driver = `
local take, refund = (function() %s end)()
local count, s, out = tonumber(ARGV[1]), ARGV[2], {}
local numbers = {}
for i = 1, count do numbers[i] = tonumber(ARGV[2 + i]) end
for i = 3 + count, #ARGV, 6 do
  local what, now, at, cost, member, keep = ARGV[i], tonumber(ARGV[i+1]), tonumber(ARGV[i+2]), tonumber(ARGV[i+3]), ARGV[i+4], ARGV[i+5]
  if what == 'take' then
    local wait, remaining, reset, new, delay, locked = take(s, now, cost, member, unpack(numbers))
    if not wait then
      out[#out+1] = 'alien'
    else
      out[#out+1] = string.format('%%.0f %%.0f %%.0f %%.0f %%s', wait, remaining, reset, delay or 0, locked and 'locked' or 'open')
      if new and keep == '1' then s = new end
    end
  else
    local new = refund(s, now, at, cost, member, unpack(numbers))
    out[#out+1] = new and 'refunded' or 'alien'
    s = new or s
  end
  out[#out+1] = s
end
return out`

// Each law and its twin, over histories of random steps: all answers alike and
// all states the same bytes.
func TestTwinsAgreeWithTheLaws(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	const histories, steps = 250, 400 // of each law: 100,000 steps
	of := map[string]int{}
	for _, limit := range twins {
		of[limit.Law()]++
	}
	for _, limit := range twins {
		t.Run(fmt.Sprintf("%s %v", limit.Law(), limit), func(t *testing.T) {
			t.Parallel()
			source, numbers := limit.Twin()
			script := redis.NewScript(fmt.Sprintf(driver, source))
			for seed := range uint64((histories + of[limit.Law()] - 1) / of[limit.Law()]) {
				h := newHistory(limit, seed)
				args := []any{len(numbers), string(h.state)}
				for _, n := range numbers {
					args = append(args, n)
				}
				var want []string
				for range steps {
					arg, answer := h.step(t)
					args = append(args, arg...)
					want = append(want, answer, string(h.state))
				}
				got, err := script.Run(ctx, client, nil, args...).StringSlice()
				require.NoError(t, err)
				for i := range want {
					if want[i] != got[i] {
						require.Equal(t, want[i], got[i], "seed %d, step %d: %v", seed, i/2, args[2+len(numbers)+i/2*6:][:6])
					}
				}
				require.NotZero(t, h.denied+h.unlimited, "seed %d denied nothing", seed)
			}
		})
	}
}

// history walks a law.
type history struct {
	limit     limiter.Limit
	most      int64
	rnd       *rand.Rand
	now       int64
	state     []byte
	receipts  []receipt
	denied    int
	unlimited int // 1 for limits that a few hundred steps do not exhaust
}

type receipt struct {
	at, cost int64
	member   string
}

func newHistory(limit limiter.Limit, seed uint64) *history {
	h := &history{limit: limit, rnd: rand.New(rand.NewPCG(seed, 42)), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()}
	d, _, _ := limiter.Decide(limit, nil, nil, h.now, limiter.Ask{})
	h.most = d.Limit
	if _, block := limit.(limiter.Block); block || h.most > 500 {
		h.unlimited = 1 // a block of one length denies no other of that length
	}
	return h
}

// step makes one step, and returns its arguments and what the law answered.
func (h *history) step(t *testing.T) ([]any, string) {
	ask := limiter.Ask{Cost: 1, Member: limiter.Member(fmt.Sprint(h.rnd.IntN(9)))}
	switch h.rnd.IntN(6) {
	case 0:
		ask.Cost = 1 + h.rnd.Int64N(h.most)
	case 1:
		ask.Cost = h.most
	}
	if n := len(h.receipts); n > 0 && h.rnd.IntN(7) == 0 {
		r := h.receipts[h.rnd.IntN(n)]
		if h.rnd.IntN(5) == 0 {
			r.cost = limiter.MaxLimit
			if _, clears := h.limit.(limiter.SuccessClearer); !clears {
				r.cost = h.most
			}
		}
		next, err := h.limit.Refund(nil, h.state, h.now, r.at, limiter.Ask{Cost: r.cost, Member: r.member})
		require.NoError(t, err)
		h.state = next
		return []any{"refund", h.now, r.at, r.cost, r.member, "1"}, "refunded"
	}
	keep := h.rnd.IntN(10) > 0 // sometimes only looked at
	now := h.now
	d, next, err := limiter.Decide(h.limit, nil, h.state, now, ask)
	require.NoError(t, err)
	if keep && len(next) > 0 {
		h.state = next
	}
	if d.Allowed && keep {
		h.receipts = append(h.receipts, receipt{d.At, ask.Cost, ask.Member})
	}
	if !d.Allowed {
		h.denied++
	}
	locked := "open"
	if d.Locked {
		locked = "locked"
	}
	answer := fmt.Sprintf("%d %d %d %d %s", d.RetryAfter.Microseconds(), d.Remaining, d.ResetAfter.Microseconds(), d.Delay.Microseconds(), locked)
	h.move(d)
	flag := "0"
	if keep {
		flag = "1"
	}
	return []any{"take", now, 0, ask.Cost, ask.Member, flag}, answer
}

// move lets time pass, mostly to where something happens; at times the clock is
// set back, or far forward.
func (h *history) move(d limiter.Decision) {
	switch h.rnd.IntN(8) {
	case 0:
		h.now += d.RetryAfter.Microseconds()
	case 1:
		h.now += max(0, d.RetryAfter.Microseconds()-1)
	case 2:
		h.now += d.ResetAfter.Microseconds()
	case 3:
		h.now += h.rnd.Int64N(1 + d.ResetAfter.Microseconds())
	case 4:
		h.now += h.rnd.Int64N(1000)
	case 5:
		if h.rnd.IntN(4) == 0 {
			h.now -= h.rnd.Int64N(1 + d.ResetAfter.Microseconds()/2)
		}
	}
}

// Numbers change under a living key: the twins read the states that others left.
func TestTwinsAgreeWhenNumbersChange(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	for _, pair := range [][2]limiter.Scripted{
		{limiter.TokenBucket{Capacity: 1000, Refill: 7, Per: time.Second}, limiter.TokenBucket{Capacity: 10, Refill: 3, Per: time.Minute}},
		{limiter.TokenBucket{Capacity: 1_000_000, Refill: 1_000_000, Per: time.Second}, limiter.TokenBucket{Capacity: 2, Refill: 1, Per: 15 * day}},
		{limiter.SlidingWindow{Limit: 20, Window: time.Hour}, limiter.SlidingWindow{Limit: 5, Window: time.Minute}},
		{limiter.SlidingWindowCounter{Limit: 200, Window: time.Hour}, limiter.SlidingWindowCounter{Limit: 50, Window: time.Minute}},
		{limiter.FixedWindow{Limit: 20, Window: time.Hour}, limiter.FixedWindow{Limit: 5, Window: time.Minute}},
		{limiter.Distinct{Limit: 8, Window: time.Hour}, limiter.Distinct{Limit: 3, Window: time.Minute}},
		{limiter.Block{}, limiter.Block{For: time.Minute}},
		{limiter.Backoff{Free: 5, Base: time.Second, Factor: 2, Max: time.Hour, LockAfter: 30, Forget: time.Hour, ForgetBeyond: 10 * day},
			limiter.Backoff{Free: 2, Base: time.Minute, Factor: 3, Max: 2 * time.Hour, LockAfter: 9, Forget: time.Minute, ForgetBeyond: 2 * day}},
	} {
		var script *redis.Script
		for seed := range uint64(20) {
			h := newHistory(pair[0], seed)
			for i := range 100 {
				limit := pair[h.rnd.IntN(2)]
				source, numbers := limit.Twin()
				if script == nil {
					script = redis.NewScript(fmt.Sprintf(driver, source))
				}
				d, _, err := limiter.Decide(limit, nil, nil, h.now, limiter.Ask{})
				require.NoError(t, err)
				h.limit, h.most, h.receipts = limit, d.Limit, nil
				args := []any{len(numbers), string(h.state)}
				for _, n := range numbers {
					args = append(args, n)
				}
				step, want := h.step(t)
				got, err := script.Run(ctx, client, nil, append(args, step...)...).StringSlice()
				require.NoError(t, err)
				require.Equal(t, []string{want, string(h.state)}, got, "%v, seed %d, step %d", limit, seed, i)
			}
		}
	}
}

// Garbage is refused by both, or read alike where the twin checks less.
func TestTwinsRefuseGarbage(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	r := rand.New(rand.NewPCG(3, 3))
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
	for _, limit := range twins {
		source, numbers := limit.Twin()
		script := redis.NewScript(fmt.Sprintf(driver, source))
		for range 200 {
			state := make([]byte, r.IntN(50))
			for i := range state {
				state[i] = byte(r.Uint32())
			}
			if len(state) >= 8 && r.IntN(2) == 0 { // a likely instant
				binary.BigEndian.PutUint64(state, uint64(now))
			}
			_, _, lawErr := limiter.Decide(limit, nil, state, now, limiter.Ask{Cost: 1, Member: limiter.Member("x")})
			args := []any{len(numbers), string(state)}
			for _, n := range numbers {
				args = append(args, n)
			}
			args = append(args, "take", now, 0, 1, limiter.Member("x"), "0")
			got, err := script.Run(ctx, client, nil, args...).StringSlice()
			require.NoError(t, err, "%s %x", limit.Law(), state)
			if lawErr == nil {
				require.NotEqual(t, "alien", got[0], "%s %x", limit.Law(), state)
			}
			require.NotContains(t, got[0], "-", "no negative number: %s %x", limit.Law(), state)
		}
	}
}
