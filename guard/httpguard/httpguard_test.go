package httpguard_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

var start = time.Unix(1_800_000_000, 0)

// HD-03: the wait is rounded up, and never 0.
func TestRetryAfterIsRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Microsecond:                 "1",
		200 * time.Millisecond:           "1",
		time.Second:                      "1",
		1500 * time.Millisecond:          "2",
		899*time.Second + 1_000_000:      "900",
		900 * time.Second:                "900",
		0:                                "1",
		31 * 24 * time.Hour:              "2678400",
		899*time.Second + 1_000:          "900",
		10*time.Second - time.Nanosecond: "10",
	} {
		w := httptest.NewRecorder()
		httpguard.Refuse(w, httptest.NewRequest("POST", "/login", nil), &guard.Denied{Action: "login", Rules: []string{"account"}, RetryAfter: wait})
		require.Equal(t, http.StatusTooManyRequests, w.Code)
		require.Equal(t, want, w.Header().Get("Retry-After"), "%v", wait)
		require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
		require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
		var body map[string]any
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
		require.Equal(t, "https://iana.org/assignments/http-problem-types#quota-exceeded", body["type"])
		require.EqualValues(t, 429, body["status"])
		require.Equal(t, "rate_limited", body["error"])
		require.Equal(t, want, fmt.Sprintf("%.0f", body["retry_after"]), "body and header agree")
		require.Equal(t, []any{"login/account"}, body["violated-policies"])
	}
}

// HD-11: every refusal that a wait can cure says how long; none other does.
func TestEveryErrorHasItsAnswer(t *testing.T) {
	for _, c := range []struct {
		err    error
		status int
		word   string
		retry  string
	}{
		{fmt.Errorf("login: %w", &guard.Denied{RetryAfter: time.Minute}), 429, "rate_limited", "60"},
		{fmt.Errorf("%w: %w", guard.ErrUnavailable, errors.New("dial tcp 10.0.0.3")), 503, "unavailable", "1"},
		{&guard.Denied{RetryAfter: time.Hour, Locked: true}, 429, "locked", "3600"},
		{guard.ErrBusy, 503, "unavailable", "1"},
		{fmt.Errorf("x: %w", limiter.ErrCostTooHigh), 400, "cost_too_high", ""},
		{guard.ErrNoPolicy, 500, "internal", ""},
		{guard.ErrMissing, 500, "internal", ""},
		{fmt.Errorf("%w: login", guard.ErrNoAccount), 400, "invalid_request", ""},
		{errors.New("anything"), 500, "internal", ""},
		{nil, 500, "internal", ""},
	} {
		w := httptest.NewRecorder()
		httpguard.Refuse(w, httptest.NewRequest("POST", "/login", nil), c.err)
		require.Equal(t, c.status, w.Code, "%v", c.err)
		require.Equal(t, c.retry, w.Header().Get("Retry-After"), "%v", c.err)
		require.NotContains(t, w.Body.String(), "10.0.0.3", "what failed is not told")
		var body httpguard.Problem
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
		require.Equal(t, c.word, body.Error)
		require.Equal(t, c.status, body.Status)
	}
}

func TestTheDetailNeverPromisesTooSoon(t *testing.T) {
	for wait, want := range map[time.Duration]string{
		time.Second:               "Try again in 1 second.",
		119 * time.Second:         "Try again in 119 seconds.",
		121 * time.Second:         "Try again in 3 minutes.",
		15 * time.Minute:          "Try again in 15 minutes.",
		2*time.Hour + time.Second: "Try again in 3 hours.",
		49 * time.Hour:            "Try again in 3 days.",
	} {
		require.Equal(t, want, httpguard.ProblemOf(&guard.Denied{RetryAfter: wait}).Detail)
	}
}

func apiGuard(t *testing.T, now func() time.Time, rules ...guard.Rule) *guard.Guard {
	g, err := guard.New(guard.Config{
		Store:    memstore.New(memstore.Config{Now: now}),
		Secret:   []byte("sixteen bytes or more"),
		Policies: []guard.Policy{{Action: "api", Rules: rules}},
	})
	require.NoError(t, err)
	return g
}

func TestRateLimitFieldsTellTheTightestLimit(t *testing.T) {
	now := start
	g := apiGuard(t, func() time.Time { return now },
		guard.Rule{Name: "day", By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.FixedWindow{Limit: 100, Window: 24 * time.Hour}}},
		guard.Rule{Name: "key", By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.TokenBucket{Capacity: 3, Refill: 1, Per: 1500 * time.Millisecond}}},
		guard.Rule{Name: "hidden", By: guard.ByIP, Effect: guard.Observe, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 1, Window: time.Hour}}},
	)
	edge := newEdge(t, g, httpguard.XRateLimit)
	a := guard.Attempt{Action: "api", APIKey: "k", IP: netip.MustParseAddr("192.0.2.1")}
	for i := range 4 {
		h := http.Header{}
		pass, err := g.Check(context.Background(), a)
		if i < 3 {
			require.NoError(t, err)
			edge.SetRateLimit(h, pass)
			require.Equal(t, strconv.Itoa(2-i), h.Get("X-RateLimit-Remaining"))
			reset := start.Add(time.Duration(i+1)*1500*time.Millisecond + 999*time.Millisecond).Unix()
			require.Equal(t, strconv.FormatInt(reset, 10), h.Get("X-RateLimit-Reset"), "rounded up")
		} else {
			var denied *guard.Denied
			require.ErrorAs(t, err, &denied)
			edge.SetRateLimit(h, denied)
			require.Equal(t, "0", h.Get("X-RateLimit-Remaining"))
		}
		require.Equal(t, "3", h.Get("X-RateLimit-Limit"))
		require.Empty(t, h.Get("Retry-After"), "HD-05: no Retry-After where nothing is refused")
	}
	h := http.Header{}
	edge.SetRateLimit(h, &guard.Denied{})
	require.Empty(t, h)
}

func newEdge(t testing.TB, g *guard.Guard, d httpguard.Dialect) *httpguard.Edge {
	t.Helper()
	e, err := httpguard.New(httpguard.Config{Guard: g, Fields: d})
	require.NoError(t, err)
	return e
}
