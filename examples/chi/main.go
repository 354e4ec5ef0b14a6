package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/netip"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"golang.org/x/crypto/bcrypt"

	"authguard/examples/accounts"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter/memstore"
	"authguard/policies"
)

func main() {
	secret := make([]byte, 32)
	rand.Read(secret) // limits in memory end with the process, and so may this
	g, err := guard.New(guard.Config{Store: memstore.New(memstore.Config{}), Secret: secret, Policies: policies.Default()})
	if err != nil {
		log.Fatal(err)
	}
	users, err := accounts.New(bcrypt.DefaultCost)
	if err != nil {
		log.Fatal(err)
	}
	// Behind a proxy, name its addresses in place of nil.
	h, err := newHandler(g, users, nil)
	if err != nil {
		log.Fatal(err)
	}
	server := http.Server{Addr: "127.0.0.1:8080", Handler: h, ReadHeaderTimeout: 5 * time.Second}
	log.Fatal(server.ListenAndServe())
}

// newHandler is the application. proxies are those that may say who their client is.
func newHandler(g *guard.Guard, users *accounts.Accounts, proxies []netip.Prefix) (http.Handler, error) {
	edge, err := httpguard.New(httpguard.Config{Guard: g})
	if err != nil {
		return nil, err
	}
	clients, err := httpguard.Clients{TrustedProxies: proxies}.Middleware()
	if err != nil {
		return nil, err
	}
	r := chi.NewRouter()
	// Not chi's RealIP, which believes whatever a client writes.
	r.Use(clients, middleware.StripSlashes)
	r.With(edge.Guard("login", httpguard.Field("email"))).Post("/login", login(users))
	r.Group(func(r chi.Router) {
		r.Use(withKey(users, g))
		r.With(perKey(edge, 1)).Get("/quote", quote)
		r.With(perKey(edge, 5)).Get("/export", quote)
	})
	return r, nil
}

// login compares the password. The Edge in front has charged the attempt, and
// gives the charge back if the answer is 2xx.
func login(users *accounts.Accounts) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		account := httpguard.PassFrom(r.Context()).Account
		if !users.Verify(account, r.PostFormValue("password")) {
			http.Error(w, "wrong e-mail address or password", http.StatusUnauthorized)
			return
		}
		fmt.Fprintln(w, "welcome") // start the session here
	}
}

type keyID struct{}

// withKey lets through who has a good API key. Others are limited by address.
func withKey(users *accounts.Accounts, g *guard.Guard) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id, ok := users.ByKey(r.Header.Get("X-API-Key"))
			if ok {
				next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), keyID{}, id)))
				return
			}
			pass, err := g.Check(r.Context(), guard.Attempt{Action: "api_unauthenticated", IP: httpguard.ClientIP(r)})
			if err != nil {
				httpguard.Refuse(w, r, err)
				return
			}
			pass.Fail(r.Context())
			http.Error(w, "send an API key as X-API-Key", http.StatusUnauthorized)
		})
	}
}

// perKey charges a call to the key that withKey found.
func perKey(edge *httpguard.Edge, cost int64) func(http.Handler) http.Handler {
	return edge.Limit(func(r *http.Request) (guard.Attempt, bool) {
		id, ok := r.Context().Value(keyID{}).(string)
		return guard.Attempt{Action: "api", APIKey: id, Cost: cost}, ok
	})
}

func quote(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintln(w, "patience is bitter, its fruit is sweet")
}
