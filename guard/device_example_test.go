package guard_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter/memstore"
	"authguard/policies"
)

// A login that knows its owners' browsers: nobody who is none of them can keep an
// owner out.
func ExampleGuard_TrustDevice() {
	accounts := map[string]guard.Account{"ann@example.com": {ID: "17", Generation: 1}} // of a database
	g, err := guard.New(guard.Config{
		Store: memstore.New(memstore.Config{}), Secret: secret, Policies: policies.Default(),
		Resolve: func(_ context.Context, name string) (guard.Account, error) { return accounts[name], nil },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	login := func(w http.ResponseWriter, r *http.Request) {
		attempt := guard.Attempt{Action: "login", Account: r.PostFormValue("email"), IP: httpguard.ClientIP(r)}
		if c, err := r.Cookie("device"); err == nil {
			attempt.Device = c.Value
		}
		var account guard.Account
		ok, err := g.Do(r.Context(), attempt, func(_ context.Context, p *guard.Pass) (bool, error) {
			account = accounts[p.Account]
			return r.PostFormValue("password") == "correct", nil
		})
		switch {
		case err != nil:
			httpguard.Refuse(w, r, err)
			return
		case !ok:
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		// After the last factor:
		value, device, err := g.TrustDevice(account, attempt.Device)
		if err == nil {
			http.SetCookie(w, &http.Cookie{Name: "device", Value: value, Expires: device.Expires,
				Path: "/", HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode})
		}
	}

	browser := post(login, "correct", nil)
	var guesses []int
	for range 6 {
		guesses = append(guesses, post(login, "guess", nil).StatusCode)
	}
	fmt.Println("guesses:", guesses)
	fmt.Println("the owner, elsewhere:", post(login, "correct", nil).StatusCode)
	fmt.Println("the owner, at home:", post(login, "correct", browser.Cookies()).StatusCode)
	// Output:
	// guesses: [401 401 401 401 401 429]
	// the owner, elsewhere: 429
	// the owner, at home: 200
}

// post logs ann in.
func post(login http.HandlerFunc, password string, cookies []*http.Cookie) *http.Response {
	r := httptest.NewRequest("POST", "/login", nil)
	r.PostForm = map[string][]string{"email": {"ann@example.com"}, "password": {password}}
	for _, c := range cookies {
		r.AddCookie(c)
	}
	w := httptest.NewRecorder()
	login(w, r)
	return w.Result()
}
