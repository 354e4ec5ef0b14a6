package httpguard_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter/memstore"
	"authguard/policies"
)

func verify(_ context.Context, account, password string) (bool, error) {
	return account == "alice@example.com" && password == "correct horse battery staple", nil
}

func Example() {
	secret := make([]byte, 32)
	rand.Read(secret)

	g, err := guard.New(guard.Config{
		Store:    memstore.New(memstore.Config{}),
		Secret:   secret, // 32 random bytes, kept like a key, the same in all processes
		Policies: policies.Default(),
	})
	if err != nil {
		log.Fatal(err)
	}
	login := func(w http.ResponseWriter, r *http.Request) {
		// Behind a proxy, ClientIP needs the middleware of httpguard.Clients.
		attempt := guard.Attempt{Action: "login", Account: r.PostFormValue("email"), IP: httpguard.ClientIP(r)}
		ok, err := g.Do(r.Context(), attempt, func(ctx context.Context, p *guard.Pass) (bool, error) {
			return verify(ctx, p.Account, r.PostFormValue("password"))
		})
		switch {
		case err != nil:
			httpguard.Refuse(w, r, err) // 429 with Retry-After, 503, …
		case !ok:
			http.Error(w, "wrong e-mail address or password", http.StatusUnauthorized)
		default:
			fmt.Fprintln(w, "welcome") // start the session here
		}
	}

	for range 6 {
		r := httptest.NewRequest("POST", "/login", strings.NewReader("email=Alice@example.com&password=guess"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		login(w, r)
		fmt.Print(w.Code, " ")
	}
	// Output: 401 401 401 401 401 429
}
