package main

import (
	"net/http"
	"testing"

	"authguard/examples/accounts"
	"authguard/examples/internal/prove"
	"authguard/guard/guardtest"
)

func TestTheExampleIsGuarded(t *testing.T) {
	prove.Guarded(t, newHandler, "/login?x=1", "/login/")
}

func TestLoginIsBounded(t *testing.T) {
	var compared guardtest.Counter
	users := prove.Users(t)
	users.Compared = compared.Add
	guardtest.Bounded(t, guardtest.Target{
		Handler:  prove.New(newHandler).Handler(t, users),
		Request:  func() *http.Request { return prove.Login(accounts.Email, "guess") },
		Verified: compared.Count,
		Limit:    5,
	})
}
