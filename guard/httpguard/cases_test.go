package httpguard_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// tick is a clock that goes on by a second at each reading.
type tick struct{ at time.Time }

func (c *tick) now() time.Time { c.at = c.at.Add(time.Second); return c.at }

// TM-13: header and body describe the instant of the decision, whatever the
// clock says when they are written.
func TestHeaderAndBodyTellOfTheDecisionsInstant(t *testing.T) {
	clock, decided := &tick{start}, time.Time{}
	g, err := guard.New(guard.Config{
		Store:  memstore.New(memstore.Config{Now: func() time.Time { decided = clock.now(); return decided }}),
		Secret: []byte("sixteen bytes or more"),
		Policies: []guard.Policy{{Action: "api", Rules: []guard.Rule{
			{Name: "key", By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.FixedWindow{Limit: 3, Window: time.Minute}}}}}},
		Now: clock.now,
	})
	require.NoError(t, err)
	edge := newEdge(t, g, httpguard.XRateLimit)
	refused := 0
	for range 200 { // over several edges of windows
		w := httptest.NewRecorder()
		pass, err := g.Check(context.Background(), guard.Attempt{Action: "api", APIKey: "k"})
		end := decided.Truncate(time.Minute).Add(time.Minute)
		if err == nil {
			edge.SetRateLimit(w.Header(), pass)
			require.Equal(t, strconv.FormatInt(end.Unix(), 10), w.Header().Get("X-RateLimit-Reset"))
			require.Empty(t, w.Header().Get("Retry-After"))
			continue
		}
		refused++
		var denied *guard.Denied
		require.ErrorAs(t, err, &denied)
		edge.SetRateLimit(w.Header(), denied)
		clock.now() // time goes by before the answer is written
		httpguard.Refuse(w, httptest.NewRequest("GET", "/", nil), err)
		wait := strconv.Itoa(int(end.Sub(decided) / time.Second))
		require.Equal(t, wait, w.Header().Get("Retry-After"))
		require.Equal(t, strconv.FormatInt(end.Unix(), 10), w.Header().Get("X-RateLimit-Reset"))
		var body httpguard.Problem
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &body))
		require.Equal(t, wait, strconv.FormatInt(body.RetryAfter, 10))
	}
	require.NotZero(t, refused)
}

// AL-09: a cost that no wait will admit is the client's error for good: no
// Retry-After, and nothing is used up.
func TestACostTooHighIsNoWait(t *testing.T) {
	g := apiGuard(t, func() time.Time { return start },
		guard.Rule{Name: "key", By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 5, Window: time.Minute}}})
	ask := func(cost int64) (*guard.Pass, *httptest.ResponseRecorder) {
		w := httptest.NewRecorder()
		pass, err := g.Check(context.Background(), guard.Attempt{Action: "api", APIKey: "k", Cost: cost})
		if err != nil {
			httpguard.Refuse(w, httptest.NewRequest("GET", "/", nil), err)
		}
		return pass, w
	}
	_, w := ask(6)
	require.Equal(t, http.StatusBadRequest, w.Code)
	require.Empty(t, w.Header().Get("Retry-After"))
	require.Contains(t, w.Body.String(), "cost_too_high")
	require.NotContains(t, w.Body.String(), "retry_after")
	pass, _ := ask(5)
	require.NotNil(t, pass, "the whole budget was left")
	require.Zero(t, pass.Limits()[0].Decision.Remaining)
}
