package httpguard_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"
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

type keyID struct{}

// authenticate puts the id of a good key into the context. Without one it
// refuses by address before anything else sees the request.
func authenticate(g *guard.Guard) func(http.Handler) http.Handler {
	ids := map[string]string{"good": "17", "better": "18"}
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id, ok := ids[r.Header.Get("X-API-Key")]
			if !ok {
				if _, err := g.Check(r.Context(), guard.Attempt{Action: "no_key"}); err != nil {
					httpguard.Refuse(w, r, err)
					return
				}
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), keyID{}, id)))
		})
	}
}

// limitByKey charges the key that was authenticated.
func limitByKey(g *guard.Guard) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id, _ := r.Context().Value(keyID{}).(string)
			if _, err := g.Check(r.Context(), guard.Attempt{Action: "api", APIKey: id}); err != nil {
				httpguard.Refuse(w, r, err)
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// MO-01, MO-02, MO-03: behind the authentication a limiter counts each key as
// itself, and bad keys are limited before it; in front of it, it lacks what it
// counts by, which is a fault that is seen at once and charged to nobody.
func TestALimiterInTheWrongPlaceChargesNobodyElse(t *testing.T) {
	limits := func(n int64) []limiter.Limit {
		return []limiter.Limit{limiter.SlidingWindow{Limit: n, Window: time.Minute}}
	}
	stack := func(wrong bool) (http.Handler, *memstore.Store, *guard.Guard) {
		store := memstore.New(memstore.Config{Now: func() time.Time { return start }})
		g, err := guard.New(guard.Config{Store: store, Secret: []byte("sixteen bytes or more"), Policies: []guard.Policy{
			{Action: "api", Rules: []guard.Rule{{Name: "key", By: guard.ByAPIKey, Limits: limits(3)}}},
			{Action: "no_key", Rules: []guard.Rule{{Name: "ip", By: guard.ByIP, Limits: limits(2)}}},
		}})
		require.NoError(t, err)
		r := chi.NewRouter()
		if wrong {
			r.Use(limitByKey(g), authenticate(g))
		} else {
			r.Use(authenticate(g), limitByKey(g))
		}
		r.Get("/", func(http.ResponseWriter, *http.Request) {})
		return r, store, g
	}
	codes := func(h http.Handler, key string, n int) string {
		var all []string
		for range n {
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set("X-API-Key", key)
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			all = append(all, strconv.Itoa(w.Code))
		}
		return strings.Join(all, " ")
	}
	h, _, g := stack(false)
	require.Equal(t, "401 401 429 429", codes(h, "bad", 4))
	require.Equal(t, "200 200 200 429", codes(h, "good", 4))
	require.Equal(t, "200 200 200 429", codes(h, "better", 4), "a key of its own")
	for _, id := range []string{"17", "18"} {
		status, err := g.Inspect(context.Background(), guard.Attempt{Action: "api", APIKey: id})
		require.NoError(t, err)
		require.EqualValues(t, 3, status[0].Used(), "counted under the id that was authenticated")
	}

	h, store, _ := stack(true)
	require.Equal(t, "500 500 500 500 500", codes(h, "good", 5))
	require.Zero(t, store.Stats().Keys)
}
