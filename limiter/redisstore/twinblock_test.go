package redisstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
)

// A block is written by one set of numbers and read by another, so its histories
// have many: 100,000 random steps, all answers and states alike.
func TestTheBlockTwinAgreesWithTheLaw(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	source, _ := limiter.Block{}.Twin()
	script := redis.NewScript(fmt.Sprintf(`
local take, refund = (function() %s end)()
local s, out = '', {}
for i = 1, #ARGV, 3 do
  local now, cost, life = tonumber(ARGV[i]), tonumber(ARGV[i+1]), tonumber(ARGV[i+2])
  if cost < 0 then
    s = refund(s, now, now, 1, '', life)
  else
    local wait, remaining, reset, new = take(s, now, cost, '', life)
    out[#out+1] = string.format('%%.0f %%.0f %%.0f', wait, remaining, reset)
    s = new or s
  end
  out[#out+1] = s
end
return out`, source))
	lengths := []time.Duration{0, 0, 0, time.Millisecond, time.Second, time.Minute, time.Minute + time.Microsecond, 366 * day}
	denied := 0
	for seed := range uint64(250) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).UnixMicro()
		var (
			state []byte
			args  []any
			want  []string
		)
		for range 400 {
			l := limiter.Block{For: lengths[rnd.IntN(len(lengths))]}
			cost := int64(rnd.IntN(8)) - 1
			cost = min(cost, 1)
			args = append(args, now, cost, l.For.Microseconds())
			wait := time.Duration(0)
			if cost < 0 {
				next, err := l.Refund(nil, state, now, now, limiter.Ask{Cost: 1})
				require.NoError(t, err)
				state = next
			} else {
				d, next, err := limiter.Decide(l, nil, state, now, limiter.Ask{Cost: cost})
				require.NoError(t, err)
				if len(next) > 0 {
					state = next
				}
				if wait = d.RetryAfter; !d.Allowed {
					denied++
				}
				want = append(want, fmt.Sprintf("%d %d %d", d.RetryAfter.Microseconds(), d.Remaining, d.ResetAfter.Microseconds()))
			}
			want = append(want, string(state))
			switch rnd.IntN(5) {
			case 0:
				now += max(0, wait.Microseconds()-int64(rnd.IntN(2)))
			case 1:
				now += rnd.Int64N(int64(time.Minute / time.Microsecond))
			case 2:
				now -= rnd.Int64N(1_000_000)
			}
		}
		got, err := script.Run(ctx, client, nil, args...).StringSlice()
		require.NoError(t, err)
		require.Equal(t, want, got, "seed %d", seed)
	}
	require.Greater(t, denied, 1_000)
}
