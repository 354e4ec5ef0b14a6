package httpguard_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// echo is a challenge that is solved by saying yes.
type echo struct{}

func (echo) Pose(token string) guard.Puzzle {
	return guard.Puzzle{Kind: "echo", Token: token, Params: map[string]string{"say": "yes"}}
}

func (echo) Verify(_ context.Context, _, solution string, _ guard.Attempt) (bool, error) {
	return solution == "yes", nil
}

// A login that exists asks for a challenge and takes the answer, from the header or
// from where the application reads it.
func TestALoginAsksForAChallenge(t *testing.T) {
	for name, read := range map[string]func(*http.Request) string{
		"header": nil,
		"form":   func(r *http.Request) string { return r.PostFormValue("challenge") },
	} {
		t.Run(name, func(t *testing.T) {
			g, err := guard.New(guard.Config{
				Store: memstore.New(memstore.Config{}), Secret: []byte("sixteen bytes or more"), Challenger: echo{},
				Policies: []guard.Policy{{Action: "login", Rules: []guard.Rule{
					{Name: "all", By: guard.Global, Effect: guard.Challenge, Counts: guard.Failures, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 1, Window: time.Hour}}},
					{Name: "ip", By: guard.ByIP, Counts: guard.Failures, Limits: per15m(2)},
				}}},
			})
			require.NoError(t, err)
			edge, err := httpguard.New(httpguard.Config{Guard: g, Challenge: read})
			require.NoError(t, err)
			compared := 0
			login := edge.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				require.Equal(t, "bob@example.com", r.PostFormValue("email"), "the body is the handler's")
				compared++
				w.WriteHeader(http.StatusUnauthorized)
			}))
			post := func(answer, accept string) *httptest.ResponseRecorder {
				form := url.Values{"email": {"bob@example.com"}}
				if read != nil {
					form.Set("challenge", answer)
				}
				r := httptest.NewRequest("POST", "/login", strings.NewReader(form.Encode()))
				r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				r.Header.Set("Accept", accept)
				if read == nil {
					r.Header.Set(httpguard.ChallengeHeader, answer)
				}
				w := httptest.NewRecorder()
				login.ServeHTTP(w, r)
				return w
			}
			require.Equal(t, 401, post("", "").Code)
			w := post("", "application/json")
			require.Equal(t, 429, w.Code)
			require.Equal(t, "3600", w.Header().Get("Retry-After"))
			require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
			var p struct {
				Error     string
				Detail    string
				Retry     int64    `json:"retry_after"`
				Violated  []string `json:"violated-policies"`
				Challenge struct {
					Kind, Token string
					Params      map[string]string
				}
			}
			require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
			require.Equal(t, "challenge_required", p.Error)
			require.EqualValues(t, 3600, p.Retry)
			require.Equal(t, []string{"login/all"}, p.Violated)
			require.Equal(t, "echo", p.Challenge.Kind)
			require.Equal(t, "yes", p.Challenge.Params["say"])
			require.Contains(t, post("", browser).Body.String(), "Solve the challenge, or try again in 60 minutes.")

			require.Equal(t, 429, post(p.Challenge.Token+".no", "").Code)
			require.Equal(t, 1, compared)
			require.Equal(t, 401, post(p.Challenge.Token+".yes", "").Code)
			require.Equal(t, 2, compared)
			w = post(p.Challenge.Token+".yes", "application/json")
			require.Equal(t, 429, w.Code, "used; and the address has had its two")
			require.NotContains(t, w.Body.String(), "challenge", "where it would not help none is posed")
		})
	}
}

// What is limited by address before its body is read answers in the header.
func TestALimitAsksForAChallenge(t *testing.T) {
	g, err := guard.New(guard.Config{
		Store: memstore.New(memstore.Config{}), Secret: []byte("sixteen bytes or more"), Challenger: echo{},
		Policies: []guard.Policy{{Action: "search", Rules: []guard.Rule{
			{Name: "ip", By: guard.ByIP, Effect: guard.Challenge, Limits: per15m(1)},
			{Name: "most", By: guard.ByIP, Limits: per15m(3)},
		}}},
	})
	require.NoError(t, err)
	edge, err := httpguard.New(httpguard.Config{Guard: g})
	require.NoError(t, err)
	search := edge.LimitAddress("search")(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }))
	get := func(answer string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/search", nil)
		r.Header.Set(httpguard.ChallengeHeader, answer)
		w := httptest.NewRecorder()
		search.ServeHTTP(w, r)
		return w
	}
	answer := func() string {
		w := get("")
		require.Equal(t, 429, w.Code)
		var p httpguard.Problem
		require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
		require.NotNil(t, p.Challenge, w.Body)
		return p.Challenge.Token + ".yes"
	}
	require.Equal(t, 200, get("").Code)
	require.Equal(t, 200, get(answer()).Code)
	require.Equal(t, 200, get(answer()).Code)
	require.NotContains(t, get("").Body.String(), "challenge", "the rule that denies has had its three")
}
