package limiter_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// A model is a law told in rational numbers, which neither overflow nor round.
type model interface {
	// at moves to an instant, in microseconds. Time only goes forward.
	at(now int64)
	// standing is what counts against the limit now.
	standing() *big.Rat
	charge(cost int64)
	refund(at, cost int64)
	// falls is when standing is no more than room, if nothing comes.
	falls(room int64) int64
}

func TestExactModels(t *testing.T) {
	for _, limit := range laws {
		var fresh func() model
		switch l := limit.(type) {
		case limiter.TokenBucket:
			fresh = func() model { return &bucketModel{l: l, debt: new(big.Rat)} }
		case limiter.SlidingWindowCounter:
			fresh = func() model { return &counterModel{l: l, counts: map[int64]int64{}} }
		default:
			continue
		}
		t.Run(fmt.Sprintf("%s %v", limit.Law(), limit), func(t *testing.T) {
			for seed := range uint64(4) {
				compare(t, limit, fresh(), rand.New(rand.NewPCG(seed, 1)))
			}
		})
	}
}

func compare(t *testing.T, limit limiter.Limit, m model, rnd *rand.Rand) {
	whole, _, err := limiter.Decide(limit, nil, nil, 0, limiter.Ask{})
	require.NoError(t, err)
	longest, _, err := limiter.Decide(limit, nil, nil, 0, limiter.Ask{Cost: whole.Limit})
	require.NoError(t, err)
	var (
		state    []byte
		receipts []limiter.Decision
		costs    []int64
		last     limiter.Decision
		life     = longest.ResetAfter.Microseconds()
		now      = 1_700_000_000_000_000 + rnd.Int64N(life)
		pick     = func(choices ...int64) int64 { return choices[rnd.IntN(len(choices))] }
	)
	for step := range 200 {
		now += pick(0, 0, 1, rnd.Int64N(life), rnd.Int64N(life/10+1), rnd.Int64N(life/whole.Limit+1), last.RetryAfter.Microseconds(), max(0, last.RetryAfter.Microseconds()-1))
		m.at(now)
		if len(receipts) > 0 && rnd.IntN(5) == 0 {
			i := rnd.IntN(len(receipts))
			state, err = limit.Refund(nil, state, now, receipts[i].At, limiter.Ask{Cost: costs[i]})
			require.NoError(t, err)
			m.refund(receipts[i].At, costs[i])
			receipts, costs = append(receipts[:i], receipts[i+1:]...), append(costs[:i], costs[i+1:]...)
		}
		cost := max(1, pick(1, whole.Limit, last.Remaining, min(whole.Limit, last.Remaining+1), 1+rnd.Int64N(whole.Limit)))
		d, next, err := limiter.Decide(limit, nil, state, now, limiter.Ask{Cost: cost})
		require.NoError(t, err)

		want := limiter.Decision{Limit: whole.Limit, At: now}
		if m.standing().Cmp(rat(whole.Limit-cost)) <= 0 {
			want.Allowed = true
			m.charge(cost)
			receipts, costs, state = append(receipts, d), append(costs, cost), next
		} else {
			want.RetryAfter = time.Duration(m.falls(whole.Limit-cost)-now) * time.Microsecond
		}
		want.Remaining = floor(new(big.Rat).Sub(rat(whole.Limit), m.standing()))
		want.ResetAfter = time.Duration(m.falls(0)-now) * time.Microsecond
		require.Equalf(t, want, d, "step %d: take %d of %v at %d", step, cost, limit, now)
		last = d
	}
}

// bucketModel: a debt that shrinks at Refill per Per.
type bucketModel struct {
	l    limiter.TokenBucket
	now  int64
	debt *big.Rat
}

func (m *bucketModel) rate() *big.Rat { return big.NewRat(m.l.Refill, m.l.Per.Microseconds()) }

func (m *bucketModel) at(now int64) {
	m.less(new(big.Rat).Mul(m.rate(), rat(now-m.now)))
	m.now = now
}

func (m *bucketModel) less(paid *big.Rat) {
	if m.debt.Sub(m.debt, paid); m.debt.Sign() < 0 {
		m.debt.SetInt64(0)
	}
}

func (m *bucketModel) standing() *big.Rat   { return m.debt }
func (m *bucketModel) charge(cost int64)    { m.debt.Add(m.debt, rat(cost)) }
func (m *bucketModel) refund(_, cost int64) { m.less(rat(cost)) }

func (m *bucketModel) falls(room int64) int64 {
	over := new(big.Rat).Sub(m.debt, rat(room))
	if over.Sign() <= 0 {
		return m.now
	}
	return m.now + ceil(over.Quo(over, m.rate()))
}

// counterModel: the admissions of each window of the clock, and the formula.
type counterModel struct {
	l      limiter.SlidingWindowCounter
	now    int64
	counts map[int64]int64 // by the window's number
}

func (m *counterModel) window() int64      { return m.l.Window.Microseconds() }
func (m *counterModel) at(now int64)       { m.now = now }
func (m *counterModel) standing() *big.Rat { return m.estimate(m.now) }
func (m *counterModel) charge(cost int64)  { m.counts[m.now/m.window()] += cost }
func (m *counterModel) refund(at, cost int64) {
	m.counts[at/m.window()] -= cost
}

func (m *counterModel) estimate(t int64) *big.Rat {
	n, elapsed := t/m.window(), t%m.window()
	weight := big.NewRat(m.window()-elapsed, m.window())
	weight.Mul(weight, rat(m.counts[n-1]))
	return weight.Add(weight, rat(m.counts[n]))
}

// falls looks for the instant instead of computing it. What is asked for rests
// on nothing but that the estimate never rises while nothing comes. Nothing
// admitted has left the estimate before its window has wholly passed.
func (m *counterModel) falls(room int64) int64 {
	lo, hi := m.now, m.now+2*m.window()
	for lo < hi {
		if mid := lo + (hi-lo)/2; m.estimate(mid).Cmp(rat(room)) <= 0 {
			hi = mid
		} else {
			lo = mid + 1
		}
	}
	return lo
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func floor(r *big.Rat) int64 { return new(big.Int).Div(r.Num(), r.Denom()).Int64() }

func ceil(r *big.Rat) int64 { return -floor(new(big.Rat).Neg(r)) }
