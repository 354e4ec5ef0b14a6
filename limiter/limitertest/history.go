package limitertest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// start is where histories begin: at it, windows of every length that divides
// 31 or 7 days begin, too.
var start = time.Unix(630*31*86_400, 0).UTC()

// A history is one key's life under a law, told step by step.
type history struct {
	t      *testing.T
	seed   uint64
	rnd    *rand.Rand
	seen   *seen
	bounds []Bound

	limit limiter.Limit
	most  int64         // the Decision.Limit of the numbers in use
	life  time.Duration // the longest wait under them
	reset time.Duration // the longest life of a key
	mixed bool          // other numbers have charged the key, too

	now      int64
	latest   int64 // the youngest instant that the state was written at
	era      int   // how often the clock was set back
	state    []byte
	last     limiter.Decision
	receipts []receipt
	ledger   []entry
	lines    []string
}

// A receipt is an admission that has not been refunded.
type receipt struct {
	at, cost int64
	gone     int64 // when it has aged out for certain
	era      int
	entry    int // in the ledger, while the era lasts
}

// seen counts what histories held, so that a run that shows nothing can fail.
type seen struct {
	admissions, denials, refunds, undone, back, forward int
}

func (s *seen) require(t *testing.T, limit limiter.Limit) {
	t.Helper()
	const empty = "%v: the histories held no %s: they show nothing"
	require.NotZerof(t, s.admissions, empty, limit, "admission")
	require.NotZerof(t, s.denials, empty, limit, "denial")
	require.NotZerof(t, s.refunds, empty, limit, "refund")
	require.NotZerof(t, s.undone, empty, limit, "charge that a refund undid")
	require.NotZerof(t, s.back, empty, limit, "clock set back")
	require.NotZerof(t, s.forward, empty, limit, "clock set forward")
}

// seeds are the first n, or the one that the environment asks for.
func seeds(n uint64) []uint64 {
	if seed, err := strconv.ParseUint(os.Getenv("LIMITERTEST_SEED"), 10, 64); err == nil {
		return []uint64{seed}
	}
	all := make([]uint64, n)
	for i := range all {
		all[i] = uint64(i) + 1
	}
	return all
}

func newHistory(t *testing.T, seed uint64, seen *seen, bounds []Bound) *history {
	rnd := rand.New(rand.NewPCG(seed, 0))
	return &history{
		t: t, seed: seed, rnd: rnd, seen: seen, bounds: bounds,
		now: start.UnixMicro() + rnd.Int64N(1e12),
	}
}

// use sets the numbers under which the history goes on.
func (h *history) use(limit limiter.Limit) {
	h.t.Helper()
	require.NoError(h.t, limit.Validate())
	d, _, err := limiter.Decide(limit, nil, nil, 0, limiter.Ask{})
	require.NoError(h.t, err, "an ask of cost 0 on an empty state")
	h.limit, h.most = limit, d.Limit
	h.life, err = longestLife(limit, d.Limit)
	require.NoError(h.t, err, "an ask of the whole limit on an empty state")
	require.LessOrEqual(h.t, h.life, limiter.MaxWindow, "the longest life of a key")
	h.reset = h.life
}

// move sets the clock.
func (h *history) move(now int64) {
	if now < h.now {
		h.era++
		h.ledger = h.ledger[:0]
	}
	h.now = now
}

func (h *history) pick(choices ...int64) int64 { return choices[h.rnd.IntN(len(choices))] }

// prefix is in front of every dst, where it must stay.
const prefix = "before"

// ask asks the law, whose decision has something else in it before.
func (h *history) ask(state []byte, now, cost int64) (limiter.Decision, []byte, error) {
	d := limiter.Decision{Allowed: true, Limit: -1, Remaining: -1, RetryAfter: -1, Delay: -1, Locked: true, ResetAfter: -1, At: -1}
	out, err := h.limit.Take(&d, []byte(prefix), state, now, limiter.Ask{Cost: cost})
	if err != nil && d != (limiter.Decision{}) {
		h.fail("cost %d at %d µs: error %v, and a decision of %+v, want the zero one", cost, now, err, d)
	}
	return d, out, err
}

// take asks the law, and checks what is true of every answer. next is the state
// that the key then has, and wrote whether the law appended one.
func (h *history) take(state []byte, now, cost int64) (d limiter.Decision, next []byte, wrote bool) {
	given := bytes.Clone(state)
	d, out, err := h.ask(state, now, cost)
	if err != nil {
		h.fail("cost %d at %s: %v", cost, h.clock(now), err)
	}
	next, wrote = h.appended(state, given, out)
	if !wrote {
		next = state
	}
	if problem := h.invalid(d, now); problem != "" {
		h.fail("cost %d at %s: %s", cost, h.clock(now), problem)
	}
	if d.ResetAfter < d.RetryAfter {
		h.fail("cost %d at %s: RetryAfter is %v, but ResetAfter only %v", cost, h.clock(now), d.RetryAfter, d.ResetAfter)
	}
	return d, next, wrote
}

// refund gives a charge back and is the state that is left.
func (h *history) refund(state []byte, now, at, cost int64) []byte {
	given := bytes.Clone(state)
	out, err := h.limit.Refund([]byte(prefix), state, now, at, limiter.Ask{Cost: cost})
	if err != nil {
		h.fail("refund of %d at %s: %v", cost, h.clock(now), err)
	}
	next, _ := h.appended(state, given, out)
	return next
}

// appended is what out holds after the prefix.
func (h *history) appended(state, given, out []byte) ([]byte, bool) {
	if !bytes.Equal(state, given) {
		h.fail("the law wrote into the state that it was given: %x became %x", given, state)
	}
	if !bytes.HasPrefix(out, []byte(prefix)) {
		h.fail("the law did not append to dst: %q", out)
	}
	return out[len(prefix):], len(out) > len(prefix)
}

// invalid says what no decision may be, whatever came before it.
func (h *history) invalid(d limiter.Decision, now int64) string {
	switch {
	case d.At != now:
		return fmt.Sprintf("At is %d, want %d", d.At, now)
	case d.Limit != h.most:
		return fmt.Sprintf("Limit is %d, want %d", d.Limit, h.most)
	case d.Remaining < 0 || d.Remaining > h.most:
		return fmt.Sprintf("Remaining is %d of %d", d.Remaining, h.most)
	case d.Allowed && d.RetryAfter != 0:
		return fmt.Sprintf("promise 1: admitted, but RetryAfter is %v", d.RetryAfter)
	case !d.Allowed && d.RetryAfter <= 0:
		return fmt.Sprintf("denied, but RetryAfter is %v", d.RetryAfter)
	case d.RetryAfter > h.life:
		return fmt.Sprintf("RetryAfter is %v, but no wait is longer than %v", d.RetryAfter, h.life)
	case d.ResetAfter < 0 || d.ResetAfter > h.reset:
		return fmt.Sprintf("ResetAfter is %v, but no key lives longer than %v", d.ResetAfter, h.reset)
	case d.RetryAfter%time.Microsecond != 0 || d.ResetAfter%time.Microsecond != 0:
		return fmt.Sprintf("RetryAfter %v and ResetAfter %v are no whole microseconds", d.RetryAfter, d.ResetAfter)
	}
	return ""
}

func (h *history) remaining(state []byte, now int64) int64 {
	d, _, _ := h.take(state, now, 0)
	return d.Remaining
}

func (h *history) allows(state []byte, now, cost int64) bool {
	d, _, _ := h.take(state, now, cost)
	return d.Allowed
}

// clock is an instant as it is told: counted from the start.
func (h *history) clock(now int64) time.Duration { return micros(now - start.UnixMicro()) }

func (h *history) note(format string, args ...any) {
	h.lines = append(h.lines, fmt.Sprintf("%v  ", h.clock(h.now))+fmt.Sprintf(format, args...))
}

// fail ends the test with the history that led here.
func (h *history) fail(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("%s %v, LIMITERTEST_SEED=%d, step %d, at %v:\n%s\nthe history, from %v on:\n%s",
		h.limit.Law(), h.limit, h.seed, len(h.lines), h.clock(h.now), fmt.Sprintf(format, args...),
		start.Format(time.RFC3339), strings.Join(h.lines[max(0, len(h.lines)-20):], "\n"))
}

// tell is a decision in the words of a trace.
func tell(d limiter.Decision) string {
	if d.Allowed {
		return fmt.Sprintf("allow remaining %d reset %v", d.Remaining, d.ResetAfter)
	}
	return fmt.Sprintf("deny retry %v remaining %d reset %v", d.RetryAfter, d.Remaining, d.ResetAfter)
}

func micros(us int64) time.Duration { return time.Duration(us) * time.Microsecond }
