package httpguard_test

import (
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter/memstore"
	"authguard/policies"
)

func exampleEdge() *httpguard.Edge {
	secret := make([]byte, 32)
	rand.Read(secret)
	stopped := func() time.Time { return start } // for the sake of the output
	g, err := guard.New(guard.Config{Store: memstore.New(memstore.Config{Now: stopped}), Secret: secret, Policies: policies.Default()})
	if err != nil {
		log.Fatal(err)
	}
	edge, err := httpguard.New(httpguard.Config{Guard: g, Fields: httpguard.Draft11})
	if err != nil {
		log.Fatal(err)
	}
	return edge
}

// A login that exists, with net/http alone. It stays as it is but for the name
// by which it looks the account up.
func ExampleEdge_Guard() {
	login := func(w http.ResponseWriter, r *http.Request) {
		account := httpguard.PassFrom(r.Context()).Account
		if ok, _ := verify(r.Context(), account, r.PostFormValue("password")); !ok {
			http.Error(w, "wrong e-mail address or password", http.StatusUnauthorized)
			return
		}
		fmt.Fprintln(w, "welcome")
	}
	edge := exampleEdge()
	mux := http.NewServeMux()
	mux.Handle("POST /login", edge.Guard("login", httpguard.Field("email"))(http.HandlerFunc(login)))

	for range 6 {
		r := httptest.NewRequest("POST", "/login", strings.NewReader("email=alice@example.com&password=guess"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Print(w.Code, " ")
	}
	// Output: 401 401 401 401 401 429
}

// An API with keys behind a proxy, with chi: whatever has no good key is limited
// by address, and each key by itself, an export costing five calls.
func ExampleEdge_Limit() {
	edge := exampleEdge()
	clients, err := httpguard.Clients{TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}.Middleware()
	if err != nil {
		log.Fatal(err)
	}
	perKey := func(cost int64) func(http.Handler) http.Handler {
		return edge.Limit(func(r *http.Request) (guard.Attempt, bool) {
			id, ok := r.Context().Value(keyID{}).(string)
			return guard.Attempt{Action: "api", APIKey: id, Cost: cost}, ok
		})
	}
	api := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "here you are") }

	r := chi.NewRouter()
	r.Use(clients, authenticate) // which puts the id of a good key into the context
	r.With(perKey(1)).Get("/quote", api)
	r.With(perKey(5)).Get("/export", api)

	for _, path := range []string{"/quote", "/export", "/export"} {
		req := httptest.NewRequest("GET", path, nil)
		req.Header.Set("X-API-Key", "good")
		w := httptest.NewRecorder()
		r.ServeHTTP(w, req)
		fmt.Println(w.Code, w.Header().Get("RateLimit"))
	}
	// Output:
	// 200 "api/key";r=9;t=1
	// 200 "api/key";r=4;t=1
	// 429 "api/key";r=4;t=1
}
