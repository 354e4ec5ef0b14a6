package httpguard_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/testkit"
	"authguard/limiter"
)

var dialects = []httpguard.Dialect{
	httpguard.XRateLimit, httpguard.NoFields, httpguard.Draft6, httpguard.Draft7, httpguard.Draft11, httpguard.Draft12,
}

// told is what SetRateLimit tells, a line a field, in the order of names.
func told(h http.Header) string {
	var b strings.Builder
	for _, name := range []string{
		"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
		"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit-Policy", "RateLimit",
	} {
		if v := h.Values(name); len(v) > 0 {
			fmt.Fprintf(&b, "%s: %s\n", name, strings.Join(v, " | "))
		}
	}
	return b.String()
}

// ask makes one attempt and tells of it in h, whatever became of it.
func ask(t testing.TB, g *guard.Guard, e *httpguard.Edge, a guard.Attempt) (h http.Header, denied *guard.Denied) {
	t.Helper()
	h = http.Header{}
	pass, err := g.Check(context.Background(), a)
	if errors.As(err, &denied) {
		e.SetRateLimit(h, denied)
		httpguard.SetHeaders(h, denied)
		return h, denied
	}
	require.NoError(t, err)
	e.SetRateLimit(h, pass)
	return h, nil
}

// The trace of the drafts' readers: five of five per 15 minutes, at 0 to 40 s;
// then one more at 100 s, while the oldest leaves at 900 s.
func TestOneTraceInEveryDialect(t *testing.T) {
	type golden struct{ first, denied string }
	for dialect, want := range map[httpguard.Dialect]golden{
		httpguard.NoFields: {},
		httpguard.XRateLimit: {
			"X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 4\nX-RateLimit-Reset: 1800000900\n",
			"X-RateLimit-Limit: 5\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1800000900\n",
		},
		httpguard.Draft6: {
			"RateLimit-Limit: 5\nRateLimit-Remaining: 4\nRateLimit-Reset: 900\nRateLimit-Policy: 5;w=900\n",
			"RateLimit-Limit: 5\nRateLimit-Remaining: 0\nRateLimit-Reset: 800\nRateLimit-Policy: 5;w=900\n",
		},
		httpguard.Draft7: {
			"RateLimit-Policy: 5;w=900\nRateLimit: limit=5, remaining=4, reset=900\n",
			"RateLimit-Policy: 5;w=900\nRateLimit: limit=5, remaining=0, reset=800\n",
		},
		httpguard.Draft11: {
			"RateLimit-Policy: \"api/key\";q=5;w=900\nRateLimit: \"api/key\";r=4;t=900\n",
			"RateLimit-Policy: \"api/key\";q=5;w=900\nRateLimit: \"api/key\";r=0;t=800\n",
		},
		httpguard.Draft12: {
			"RateLimit-Policy: \"api/key\";q=5;w=900\nRateLimit: \"api/key\";a=4;w=900\n",
			"RateLimit-Policy: \"api/key\";q=5;w=900\nRateLimit: \"api/key\";a=0;w=800\n",
		},
	} {
		clock := testkit.NewClock(start)
		g := apiGuard(t, clock.Now, guard.Rule{Name: "key", By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}}})
		e, a := newEdge(t, g, dialect), guard.Attempt{Action: "api", APIKey: "k"}
		h, _ := ask(t, g, e, a)
		require.Equal(t, want.first, told(h), dialect)
		require.Empty(t, h.Get("Retry-After"))
		for range 4 {
			clock.Advance(10 * time.Second)
			_, denied := ask(t, g, e, a)
			require.Nil(t, denied)
		}
		clock.Advance(60 * time.Second)
		h, denied := ask(t, g, e, a)
		require.NotNil(t, denied)
		require.Equal(t, want.denied, told(h), dialect)
		require.Equal(t, "800", h.Get("Retry-After"))
	}
}

// Several limits: the single forms tell the tightest, the lists all of them, and
// which those are is the same in every answer.
func TestEveryTierInEveryDialect(t *testing.T) {
	rules := []guard.Rule{
		{Name: "key", By: guard.ByAPIKey, Limits: []limiter.Limit{
			limiter.TokenBucket{Capacity: 10, Refill: 3, Per: time.Second},
			limiter.FixedWindow{Limit: 100, Window: time.Hour}}},
		{Name: "ip", By: guard.ByIP, Limits: []limiter.Limit{limiter.SlidingWindowCounter{Limit: 20, Window: 1500 * time.Millisecond}}},
		{Name: "queue", By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.LeakyBucket{Capacity: 30, Leak: 10, Per: time.Minute}}},
		{Name: "trial", By: guard.ByAPIKey, Effect: guard.Observe, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 1, Window: time.Hour}}},
		{Name: "streak", By: guard.ByAPIKey, Counts: guard.Failures, Limits: []limiter.Limit{limiter.Backoff{Free: 100, Base: time.Second, Factor: 2, Max: time.Minute, Forget: time.Hour, ForgetBeyond: time.Hour}}},
		{Name: "spread", By: guard.ByAPIKey, Members: guard.ByIP, Limits: []limiter.Limit{limiter.Distinct{Limit: 2, Window: time.Hour}}},
	}
	const (
		numbers = "RateLimit-Policy: 10;w=4, 100;w=3600, 20;w=2, 30;w=180\n"
		named   = "RateLimit-Policy: \"api/key/1\";q=10;w=4, \"api/key/2\";q=100;w=3600, \"api/ip\";q=20;w=2, \"api/queue\";q=30;w=180\n"
	)
	for dialect, want := range map[httpguard.Dialect][2]string{ // after four units, and refused seven
		httpguard.XRateLimit: {
			"X-RateLimit-Limit: 10\nX-RateLimit-Remaining: 6\nX-RateLimit-Reset: 1800000002\n",
			"X-RateLimit-Limit: 10\nX-RateLimit-Remaining: 6\nX-RateLimit-Reset: 1800000001\n",
		},
		httpguard.Draft6: {
			"RateLimit-Limit: 10\nRateLimit-Remaining: 6\nRateLimit-Reset: 2\n" + numbers,
			"RateLimit-Limit: 10\nRateLimit-Remaining: 6\nRateLimit-Reset: 1\n" + numbers,
		},
		httpguard.Draft7: {
			numbers + "RateLimit: limit=10, remaining=6, reset=2\n",
			numbers + "RateLimit: limit=10, remaining=6, reset=1\n",
		},
		httpguard.Draft11: {
			named + "RateLimit: \"api/key/1\";r=6;t=1, \"api/key/2\";r=96;t=3600, \"api/ip\";r=16;t=3, \"api/queue\";r=26;t=6\n",
			named + "RateLimit: \"api/key/1\";r=6;t=1, \"api/key/2\";r=96;t=1, \"api/ip\";r=16;t=1, \"api/queue\";r=26;t=1\n",
		},
		httpguard.Draft12: {
			named + "RateLimit: \"api/key/1\";a=6;w=1, \"api/key/2\";a=96;w=3600, \"api/ip\";a=16;w=3, \"api/queue\";a=26;w=6\n",
			named + "RateLimit: \"api/key/1\";a=6;w=1, \"api/key/2\";a=96;w=1, \"api/ip\";a=16;w=1, \"api/queue\";a=26;w=1\n",
		},
	} {
		g := apiGuard(t, func() time.Time { return start }, rules...)
		e := newEdge(t, g, dialect)
		a := guard.Attempt{Action: "api", APIKey: "k", IP: netip.MustParseAddr("192.0.2.1"), Cost: 4}
		h, _ := ask(t, g, e, a)
		require.Equal(t, want[0], told(h), dialect)
		a.Cost = 7
		h, denied := ask(t, g, e, a)
		require.NotNil(t, denied)
		require.Equal(t, want[1], told(h), dialect)
		require.Equal(t, "1", h.Get("Retry-After"))
	}
}

// Other middleware's fields, of whatever dialect, do not stay beside ours.
func TestThereIsOneFamilyOfFields(t *testing.T) {
	g := apiGuard(t, func() time.Time { return start }, guard.Rule{Name: "key", By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 5, Window: time.Minute}}})
	for _, d := range dialects {
		h := http.Header{}
		for _, other := range dialects {
			pass, err := g.Check(context.Background(), guard.Attempt{Action: "api", APIKey: d.String() + other.String()})
			require.NoError(t, err)
			newEdge(t, g, other).SetRateLimit(h, pass)
		}
		pass, err := g.Check(context.Background(), guard.Attempt{Action: "api", APIKey: d.String()})
		require.NoError(t, err)
		newEdge(t, g, d).SetRateLimit(h, pass)
		alone := http.Header{}
		newEdge(t, g, d).SetRateLimit(alone, pass)
		require.Equal(t, alone, h)
	}
}

type item struct{ quota, window int64 }

// readFields takes the fields apart as a client does, by RFC 9651 and the drafts.
func readFields(t *testing.T, d httpguard.Dialect, h http.Header) (policies, limits map[string]item) {
	t.Helper()
	canonical := func(name string, v httpsfv.StructuredFieldValue, err error) {
		require.NoError(t, err)
		text, err := httpsfv.Marshal(v)
		require.NoError(t, err)
		require.Equal(t, text, h.Get(name), "canonical form")
	}
	integer := func(p *httpsfv.Params, key string) int64 {
		v, ok := p.Get(key)
		require.True(t, ok, key)
		n, ok := v.(int64)
		require.True(t, ok && n >= 0, "%s is %v", key, v)
		return n
	}
	policies, limits = map[string]item{}, map[string]item{}
	list, err := httpsfv.UnmarshalList(h.Values("RateLimit-Policy"))
	canonical("RateLimit-Policy", list, err)
	for i, m := range list {
		it := m.(httpsfv.Item)
		if q, ok := it.Value.(int64); ok {
			policies[strconv.Itoa(i)] = item{q, integer(it.Params, "w")}
			continue
		}
		name, ok := it.Value.(string)
		require.True(t, ok, "a name is a String")
		require.NotContains(t, policies, name)
		policies[name] = item{integer(it.Params, "q"), integer(it.Params, "w")}
	}
	if d == httpguard.Draft7 {
		dict, err := httpsfv.UnmarshalDictionary(h.Values("RateLimit"))
		canonical("RateLimit", dict, err)
		for _, key := range []string{"limit", "remaining", "reset"} {
			m, ok := dict.Get(key)
			require.True(t, ok)
			require.GreaterOrEqual(t, m.(httpsfv.Item).Value.(int64), int64(0))
		}
		m, _ := dict.Get("reset")
		r, _ := dict.Get("remaining")
		limits[""] = item{r.(httpsfv.Item).Value.(int64), m.(httpsfv.Item).Value.(int64)}
		return policies, limits
	}
	left, window := "r", "t"
	if d == httpguard.Draft12 {
		left, window = "a", "w"
	}
	list, err = httpsfv.UnmarshalList(h.Values("RateLimit"))
	canonical("RateLimit", list, err)
	for _, m := range list {
		it := m.(httpsfv.Item)
		name := it.Value.(string)
		require.Contains(t, policies, name)
		limits[name] = item{integer(it.Params, left), integer(it.Params, window)}
		require.LessOrEqual(t, limits[name].quota, policies[name].quota)
	}
	return policies, limits
}

// Over random histories of random limits, every structured field is canonical,
// its policies stay as they are, and no window ends after Retry-After. Waiting
// Retry-After is enough (HD-03, HD-07), and a reset is never beyond the limit's
// own time (HD-06).
func TestFieldsAreReadableAndNeverPromiseTooMuch(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 60 {
		n := 1 + rnd.Int64N(12)
		window := time.Duration(2+rnd.IntN(100)) * 500 * time.Millisecond
		laws := []limiter.Limit{
			limiter.SlidingWindow{Limit: n, Window: window},
			limiter.FixedWindow{Limit: n, Window: window},
			limiter.SlidingWindowCounter{Limit: n, Window: window},
			limiter.TokenBucket{Capacity: n, Refill: 1 + rnd.Int64N(7), Per: window},
			limiter.LeakyBucket{Capacity: n, Leak: 1 + rnd.Int64N(7), Per: window},
		}
		rules := []guard.Rule{
			{Name: "a", By: guard.ByAPIKey, Limits: []limiter.Limit{laws[rnd.IntN(len(laws))]}},
			{Name: "b", By: guard.ByAPIKey, Limits: []limiter.Limit{laws[rnd.IntN(len(laws))], limiter.SlidingWindow{Limit: 20, Window: time.Hour}}},
		}
		dialect := []httpguard.Dialect{httpguard.Draft7, httpguard.Draft11, httpguard.Draft12}[round%3]
		clock := testkit.NewClock(start)
		g := apiGuard(t, clock.Now, rules...)
		e := newEdge(t, g, dialect)
		var constant map[string]item
		for range 60 {
			clock.Advance(time.Duration(rnd.Int64N(int64(window))).Truncate(time.Microsecond) / 4)
			a := guard.Attempt{Action: "api", APIKey: "k", Cost: 1 + rnd.Int64N(n)}
			h, denied := ask(t, g, e, a)
			policies, limits := readFields(t, dialect, h)
			if constant == nil {
				constant = policies
			}
			require.Equal(t, constant, policies)
			if denied == nil {
				require.Empty(t, h.Get("Retry-After"), "HD-05")
				continue
			}
			retry, err := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
			require.NoError(t, err)
			for name, l := range limits {
				require.LessOrEqual(t, l.window, retry, "%s in %v", name, h)
			}
			if rnd.IntN(4) == 0 {
				clock.Advance(time.Duration(retry) * time.Second)
				_, denied = ask(t, g, e, a)
				require.Nil(t, denied, "waited as told")
			}
		}
	}
}

// What a bucket's window promises is exact: the next unit is there then, to the
// second, and not a second before.
func TestABucketsWindowEndsWithTheNextUnit(t *testing.T) {
	for _, law := range []limiter.Limit{
		limiter.TokenBucket{Capacity: 50, Refill: 1, Per: 7 * time.Second},
		limiter.LeakyBucket{Capacity: 50, Leak: 1, Per: 7 * time.Second},
		limiter.TokenBucket{Capacity: 50, Refill: 3, Per: 50 * time.Second},
	} {
		clock := testkit.NewClock(start)
		g := apiGuard(t, clock.Now, guard.Rule{Name: "key", By: guard.ByAPIKey, Limits: []limiter.Limit{law}})
		e, a := newEdge(t, g, httpguard.Draft11), guard.Attempt{Action: "api", APIKey: "k"}
		remaining := func() int64 {
			s, err := g.Inspect(context.Background(), a)
			require.NoError(t, err)
			return s[0].Decision.Remaining
		}
		for range 40 {
			h, denied := ask(t, g, e, a)
			require.Nil(t, denied)
			_, limits := readFields(t, httpguard.Draft11, h)
			now := limits["api/key"]
			require.Equal(t, remaining(), now.quota)
			clock.Advance(time.Duration(now.window-1) * time.Second)
			require.Equal(t, now.quota, remaining(), "%v: a second before", law)
			clock.Advance(time.Second)
			require.Greater(t, remaining(), now.quota, "%v: then", law)
			clock.Advance(-time.Duration(now.window) * time.Second)
			clock.Advance(1234 * time.Millisecond)
		}
	}
}

// ownLaw is a law from outside, whose window nobody here knows.
type ownLaw struct{ limiter.SlidingWindow }

func (ownLaw) Law() string { return "own_law" }

func TestALawFromOutsideHasAQuotaAndNoWindow(t *testing.T) {
	for dialect, want := range map[httpguard.Dialect]string{
		httpguard.Draft7:  "RateLimit-Policy: 5\nRateLimit: limit=5, remaining=4, reset=60\n",
		httpguard.Draft11: "RateLimit-Policy: \"api/key\";q=5\nRateLimit: \"api/key\";r=4;t=60\n",
	} {
		g := apiGuard(t, func() time.Time { return start }, guard.Rule{Name: "key", By: guard.ByAPIKey,
			Limits: []limiter.Limit{ownLaw{limiter.SlidingWindow{Limit: 5, Window: time.Minute}}}})
		h, _ := ask(t, g, newEdge(t, g, dialect), guard.Attempt{Action: "api", APIKey: "k"})
		require.Equal(t, want, told(h))
	}
}

// The fields tell of the policies in force, also of those that have just replaced
// others, while answers are under way.
func TestFieldsOfNewPolicies(t *testing.T) {
	policy := func(name string, n int64) []guard.Policy {
		return []guard.Policy{{Action: "api", Rules: []guard.Rule{{Name: name, By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: n, Window: time.Minute}}}}}}
	}
	clock := testkit.NewClock(start)
	g := apiGuard(t, clock.Now, policy("key", 500)[0].Rules...)
	e, a := newEdge(t, g, httpguard.Draft11), guard.Attempt{Action: "api", APIKey: "k"}
	h, _ := ask(t, g, e, a)
	require.Equal(t, "RateLimit-Policy: \"api/key\";q=500;w=60\nRateLimit: \"api/key\";r=499;t=60\n", told(h))
	before, err := g.Check(context.Background(), a)
	require.NoError(t, err)

	require.NoError(t, g.SetPolicies(policy("user", 400)))
	e.SetRateLimit(h, before)
	require.Empty(t, told(h), "rather nothing than the limit of another rule")
	h, _ = ask(t, g, e, a)
	require.Equal(t, "RateLimit-Policy: \"api/user\";q=400;w=60\nRateLimit: \"api/user\";r=399;t=60\n", told(h))

	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				h := http.Header{}
				if pass, err := g.Check(context.Background(), a); err == nil {
					e.SetRateLimit(h, pass)
				}
			}
		})
	}
	for i := range int64(50) {
		require.NoError(t, g.SetPolicies(policy("user", 300+i)))
	}
	wg.Wait()
	h, _ = ask(t, g, e, a)
	require.Contains(t, told(h), "q=349;w=60")
}
