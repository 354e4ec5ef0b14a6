package guardtest_test

import (
	"crypto/rand"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/guardtest"
	"authguard/guard/httpguard"
	"authguard/limiter"
	"authguard/limiter/memstore"
	"authguard/policies"
)

// newApplication is what these tests are about. Its verifier counts.
func newApplication(store limiter.Store, compared *guardtest.Counter) chi.Router {
	secret := make([]byte, 32)
	rand.Read(secret)
	g, err := guard.New(guard.Config{Store: store, Secret: secret, Policies: policies.Default()})
	if err != nil {
		log.Fatal(err)
	}
	verify := func(account, password string) bool {
		if account != "alice@example.com" {
			return false
		}
		compared.Add()
		return password == "correct horse battery staple"
	}
	r := chi.NewRouter()
	r.Get("/", func(http.ResponseWriter, *http.Request) {})
	r.Post("/login", func(w http.ResponseWriter, r *http.Request) {
		peer, _ := netip.ParseAddrPort(r.RemoteAddr)
		pass, err := g.Check(r.Context(), guard.Attempt{Action: "login", Account: r.PostFormValue("email"), IP: peer.Addr()})
		switch {
		case err != nil:
			httpguard.Refuse(w, r, err)
		case verify(pass.Account, r.PostFormValue("password")):
			pass.Succeed(r.Context())
		default:
			pass.Fail(r.Context())
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	return r
}

func logIn(password string) *http.Request {
	form := url.Values{"email": {"alice@example.com"}, "password": {password}}
	r := httptest.NewRequest("POST", "/login", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func TestLoginIsBounded(t *testing.T) {
	var compared guardtest.Counter // compared.Add() where the password is compared
	guardtest.Bounded(t, guardtest.Target{
		Handler:  newApplication(memstore.New(memstore.Config{}), &compared),
		Request:  func() *http.Request { return logIn("guess") },
		Verified: compared.Count,
		Limit:    5,
	})
}

func TestEveryRouteIsGuarded(t *testing.T) {
	var compared guardtest.Counter
	store := guardtest.Open(t)
	application := newApplication(store, &compared)
	guardtest.EveryRoute(t, guardtest.Table{
		Handler:   application,
		Store:     store,
		Routes:    guardtest.ChiRoutes(application),
		Guarded:   []string{"POST /login"},
		Unguarded: map[string]string{"GET /": "a page"},
		Request: func(method, path string) *http.Request {
			r := logIn("guess")
			r.Method, r.URL.Path = method, path
			return r
		},
		Verified: compared.Count,
	})
}

func TestThatLogsInAHundredTimes(t *testing.T) {
	application := newApplication(guardtest.Open(t), new(guardtest.Counter))
	for range 100 { // no limit is in the way
		w := httptest.NewRecorder()
		application.ServeHTTP(w, logIn("guess"))
		require.Equal(t, http.StatusUnauthorized, w.Code)
	}
}
