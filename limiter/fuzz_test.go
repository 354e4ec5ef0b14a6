package limiter_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// Whatever the numbers and whatever happens to a key, the clock set back
// included: a yes owes no wait, a no names the exact one, Remaining is what an
// ask of so much finds to be true, and no instant admits more than the limit.
func FuzzHistories(f *testing.F) {
	for law := range byte(fuzzedLaws) {
		for seed := range uint64(3) {
			rnd := rand.New(rand.NewPCG(seed, uint64(law)))
			data := []byte{law}
			for range 200 {
				data = append(data, byte(rnd.Uint32()))
			}
			f.Add(data)
		}
		// Somebody who asks for one, over and over, and waits as told: the way
		// through a streak to its lock. (What a law has no use for of the
		// numbers in front are steps.)
		f.Add(append([]byte{law, 0, 0, 1, 2, 5, 4, 4}, bytes.Repeat([]byte{4, 0, 0, 0, 0}, 40)...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		in := tape(data)
		limit := in.limit()
		if err := limit.Validate(); err != nil {
			_, out, takeErr := limiter.Decide(limit, nil, nil, t0, limiter.Ask{Cost: 1})
			require.Equal(t, err, takeErr)
			require.Empty(t, out)
			return
		}
		k := newFuzzedKey(t, limit)
		for step := 0; len(in) > 0 && step < 200; step++ {
			k.step(&in)
		}
	})
}

// A tape is read for choices; where it ends there are zeros.
type tape []byte

func (in *tape) byte() byte {
	if len(*in) == 0 {
		return 0
	}
	b := (*in)[0]
	*in = (*in)[1:]
	return b
}

func (in *tape) int(bytes int) (n int64) {
	for range bytes {
		n = n<<8 | int64(in.byte())
	}
	return n
}

// count is mostly small, since small limits are soon reached.
func (in *tape) count() int64 {
	if b := in.byte(); b < 0xe0 {
		return 1 + int64(b)%8
	}
	return in.int(3) % (limiter.MaxLimit + 2)
}

func (in *tape) window() time.Duration {
	b := in.byte()
	if b >= 0xe0 {
		return time.Duration(in.int(6)) * time.Microsecond
	}
	units := []time.Duration{time.Millisecond, 1_234_567 * time.Microsecond, time.Second, time.Minute, time.Hour, day}
	return time.Duration(1+int(b)/32) * units[int(b)%len(units)]
}

const fuzzedLaws = 7

func (in *tape) limit() limiter.Limit {
	switch in.byte() % fuzzedLaws {
	case 0:
		return limiter.TokenBucket{Capacity: in.count(), Refill: in.count(), Per: in.window()}
	case 1:
		return limiter.LeakyBucket{Capacity: in.count(), Leak: in.count(), Per: in.window()}
	case 2:
		return limiter.FixedWindow{Limit: in.count(), Window: in.window()}
	case 3:
		return limiter.SlidingWindow{Limit: in.count(), Window: in.window()}
	case 4:
		return limiter.SlidingWindowCounter{Limit: in.count(), Window: in.window()}
	case 5:
		l := limiter.Backoff{Free: in.count(), Base: in.window(), Factor: in.count()}
		l.Max = l.Base + in.window()
		if lock := in.count(); lock > 2 {
			l.LockAfter = l.Free + lock
		}
		l.Forget = in.window()
		l.ForgetBeyond = max(l.Forget, l.Max) + in.window()
		return l
	}
	return limiter.Distinct{Limit: in.count(), Window: in.window()}
}

// fuzzedKey is one key's life under a law.
type fuzzedKey struct {
	*testing.T
	limit    limiter.Limit
	most     int64 // Decision.Limit
	distinct bool
	now      int64
	era      int // how often the clock was set back
	state    []byte
	last     limiter.Decision
	receipts []fuzzedReceipt

	// What stands admitted since the clock last moved: units, or members.
	units   int64
	members map[string]bool
}

type fuzzedReceipt struct {
	at, cost int64
	era      int
	member   string
}

func newFuzzedKey(t *testing.T, limit limiter.Limit) *fuzzedKey {
	d, _, err := limiter.Decide(limit, nil, nil, t0, limiter.Ask{})
	require.NoError(t, err)
	_, distinct := limit.(limiter.Distinct)
	return &fuzzedKey{T: t, limit: limit, most: d.Limit, distinct: distinct, now: t0, members: map[string]bool{}}
}

func (k *fuzzedKey) step(in *tape) {
	op := in.byte()
	switch op % 8 {
	case 0, 1, 2:
		k.move(in)
	case 3:
		k.refund(in)
	default:
		k.ask(in)
	}
}

// move sets the clock: most often to an instant that the last decision named.
func (k *fuzzedKey) move(in *tape) {
	to := k.now
	switch in.byte() % 8 {
	case 0:
		to += us(k.last.RetryAfter)
	case 1:
		to += us(k.last.RetryAfter) - 1
	case 2:
		to += us(k.last.ResetAfter)
	case 3:
		to++
	case 4:
		to += in.int(2)
	case 5:
		to += in.int(5)
	case 6:
		to -= in.int(2)
	case 7:
		to -= in.int(4)
	}
	if to < 0 || to > 1<<53-us(800*day) || to == k.now {
		return // beyond what a wait may still be told of
	}
	if to < k.now {
		k.era++
	}
	k.now, k.units = to, 0
	clear(k.members)
}

func (k *fuzzedKey) ask(in *tape) {
	left := k.left()
	cost := int64(1)
	switch in.byte() % 8 {
	case 3:
		cost = max(1, left)
	case 4:
		cost = left + 1
	case 5:
		cost = k.most
	case 6:
		cost += in.int(1)
	case 7:
		cost += in.int(3)
	}
	ask := limiter.Ask{Cost: cost, Member: limiter.Member(fmt.Sprint(in.byte() % 12))}
	d, next, err := limiter.Decide(k.limit, nil, k.state, k.now, ask)
	if most := k.mostAsked(); cost > most {
		require.ErrorIs(k, err, limiter.ErrCostTooHigh)
		require.Empty(k, next)
		return
	}
	require.NoError(k, err)
	k.valid(d)
	if !k.distinct {
		require.Equal(k, cost <= left, d.Allowed, "%d of %d left", cost, left)
	}
	k.last = d
	if !d.Allowed {
		require.Equal(k, left, d.Remaining)
		if len(next) > 0 {
			k.state = next // mended, after the clock was set back
		}
		k.exact(d, ask)
		return
	}
	require.NotEmpty(k, next)
	k.state = next
	k.receipts = append(k.receipts, fuzzedReceipt{d.At, cost, k.era, ask.Member})
	k.units += cost
	k.members[ask.Member] = true
	standing := k.units
	if k.distinct {
		standing = int64(len(k.members))
	}
	require.LessOrEqual(k, standing, k.most, "at one instant")
	require.Equal(k, d.Remaining, k.left(), "what the admission said is left")
}

// mostAsked is the highest cost that is no error.
func (k *fuzzedKey) mostAsked() int64 {
	if k.distinct {
		return limiter.MaxLimit // it touches one member, whatever it costs
	}
	return k.most
}

// valid checks what is true of every decision.
func (k *fuzzedKey) valid(d limiter.Decision) {
	require.Equal(k, k.now, d.At)
	require.Equal(k, k.most, d.Limit)
	require.Equal(k, min(max(d.Remaining, 0), k.most), d.Remaining)
	require.Equal(k, d.Allowed, d.RetryAfter == 0)
	require.GreaterOrEqual(k, d.RetryAfter, time.Duration(0))
	require.GreaterOrEqual(k, d.ResetAfter, d.RetryAfter)
	for _, wait := range []time.Duration{d.RetryAfter, d.ResetAfter, d.Delay} {
		require.Zero(k, wait%time.Microsecond)
	}
	require.False(k, d.Allowed && d.Locked)
}

// exact checks that d's wait is enough and a microsecond less is not.
func (k *fuzzedKey) exact(d limiter.Decision, ask limiter.Ask) {
	early, _, err := limiter.Decide(k.limit, nil, k.state, k.now+us(d.RetryAfter)-1, ask)
	require.NoError(k, err)
	require.False(k, early.Allowed, "a microsecond too soon")
	if d.Locked {
		return // the wait is only when to look again
	}
	require.Equal(k, time.Microsecond, early.RetryAfter)
	then, _, err := limiter.Decide(k.limit, nil, k.state, k.now+us(d.RetryAfter), ask)
	require.NoError(k, err)
	require.True(k, then.Allowed, "the wait that was told is not enough")
}

// left is what remains now, and found to be true.
func (k *fuzzedKey) left() int64 {
	d, next, err := limiter.Decide(k.limit, nil, k.state, k.now, limiter.Ask{})
	require.NoError(k, err)
	require.Empty(k, next)
	require.True(k, d.Allowed)
	k.valid(d)
	allows := func(cost int64) bool {
		d, _, err := limiter.Decide(k.limit, nil, k.state, k.now, limiter.Ask{Cost: cost, Member: limiter.Member("a stranger")})
		require.NoError(k, err)
		return d.Allowed
	}
	if k.distinct {
		require.Equal(k, d.Remaining > 0, allows(1), "%d remain", d.Remaining)
		return d.Remaining
	}
	require.True(k, d.Remaining == 0 || allows(d.Remaining), "%d remain and are denied", d.Remaining)
	require.True(k, d.Remaining == k.most || !allows(d.Remaining+1), "%d remain, and one more is admitted", d.Remaining)
	return d.Remaining
}

// refund gives a charge back, or all that a success does.
func (k *fuzzedKey) refund(in *tape) {
	if len(k.receipts) == 0 {
		return
	}
	i := int(in.byte()) % len(k.receipts)
	r := k.receipts[i]
	k.receipts = append(k.receipts[:i], k.receipts[i+1:]...)
	cost := r.cost
	_, clears := k.limit.(limiter.SuccessClearer)
	success := clears && in.byte()%2 == 0
	if success {
		cost = limiter.MaxLimit
	}
	next, err := k.limit.Refund(nil, k.state, k.now, r.at, limiter.Ask{Cost: cost, Member: r.member})
	require.NoError(k, err)
	k.state = next
	// A refund is for the charge's own instant, except where the law or a clock
	// that was set back makes another pay; then more may be admitted now.
	_, exact := k.limit.(limiter.ExactRefunder)
	if !exact || clears || r.at == k.now || r.era != k.era {
		k.units = max(0, k.units-cost)
		delete(k.members, r.member)
	}
	k.left()
}
