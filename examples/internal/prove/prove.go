package prove

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/examples/accounts"
)

// Guarded proves what the examples promise. spellings are other paths under which
// the framework finds the login.
func Guarded(t *testing.T, n New, spellings ...string) {
	t.Run("five guesses, then 429", n.fiveGuesses)
	t.Run("a success costs nothing", n.successes)
	for _, path := range spellings {
		t.Run("one budget with "+path, func(t *testing.T) { n.sharedBudget(t, path) })
	}
	t.Run("nobody chooses an address", n.spoofed)
	t.Run("a trusted proxy names the client", n.proxied)
	t.Run("a key pays the cost of its calls", n.costs)
	t.Run("wrong keys are limited by address", n.wrongKeys)
}

func (n New) fiveGuesses(t *testing.T) {
	s := n.serve(t)
	for range 5 {
		require.Equal(t, http.StatusUnauthorized, s.login("/login", accounts.Email, "guess").StatusCode)
	}
	s.login("/login", accounts.Email, "guess").requireRefused(t, "login/account")
	s.login("/login", accounts.Email, accounts.Password).requireRefused(t, "login/account")
	s.login("/login", " ALICE@example.com", "guess").requireRefused(t, "login/account")
	require.Equal(t, http.StatusUnauthorized, s.login("/login", "bob@example.com", "guess").StatusCode, "another account")
}

// The framework's answers reach whoever settles by them: a success gives its
// charge back, a wrong password does not.
func (n New) successes(t *testing.T) {
	s := n.serve(t)
	for range 10 {
		require.Equal(t, http.StatusOK, s.login("/login", accounts.Email, accounts.Password).StatusCode)
	}
	for range 5 {
		require.Equal(t, http.StatusUnauthorized, s.login("/login", accounts.Email, "guess").StatusCode)
	}
	s.login("/login", accounts.Email, accounts.Password).requireRefused(t, "login/account")
}

func (n New) sharedBudget(t *testing.T, path string) {
	s := n.serve(t)
	for range 2 {
		require.Equal(t, http.StatusUnauthorized, s.login("/login", accounts.Email, "guess").StatusCode)
	}
	for range 3 { // so it is found
		require.Equal(t, http.StatusUnauthorized, s.login(path, accounts.Email, "guess").StatusCode)
	}
	s.login(path, accounts.Email, "guess").requireRefused(t, "login/account")
	s.login("/login", accounts.Email, "guess").requireRefused(t, "login/account")
}

// spoofs are the i-th address in every header that some framework believes.
func spoofs(i int) (headers []string) {
	for _, name := range []string{
		"X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP", "X-Client-IP",
		"X-Appengine-Remote-Addr", "Fly-Client-IP", "X-Original-Forwarded-For",
	} {
		headers = append(headers, name, fmt.Sprintf("203.0.113.%d", i))
	}
	return append(headers, "Forwarded", fmt.Sprintf("for=203.0.113.%d", i))
}

// spray fails at another account each time, and then once more: ten accounts are
// what one address may fail at in an hour.
func (s service) spray(headers func(i int) []string) answer {
	s.t.Helper()
	for i := range 10 {
		a := s.login("/login", fmt.Sprintf("user%d@example.com", i), "guess", headers(i)...)
		require.Equal(s.t, http.StatusUnauthorized, a.StatusCode, a.text)
	}
	return s.login("/login", "user10@example.com", "guess", headers(10)...)
}

func (n New) spoofed(t *testing.T) {
	n.serve(t).spray(spoofs).requireRefused(t, "login/spraying")
}

func (n New) proxied(t *testing.T) {
	s := n.serve(t, "127.0.0.0/8") // where the test itself comes from
	from := func(client string) func(int) []string {
		return func(i int) []string {
			return append(spoofs(i), "X-Forwarded-For", fmt.Sprintf("203.0.113.%d, %s", i, client))
		}
	}
	s.spray(from("198.51.100.1")).requireRefused(t, "login/spraying")
	s.spray(from("198.51.100.2")).requireRefused(t, "login/spraying")
}

func (n New) costs(t *testing.T) {
	s := n.serve(t)
	for _, c := range []struct{ path, remaining string }{{"/quote", "9"}, {"/export", "4"}} {
		a := s.call(c.path)
		require.Equal(t, http.StatusOK, a.StatusCode)
		require.Equal(t, c.remaining, a.Header.Get("X-RateLimit-Remaining"))
	}
	a := s.call("/export", spoofs(1)...)
	a.requireRefused(t, "api/key")
	require.Equal(t, "4", a.Header.Get("X-RateLimit-Remaining"), "a refusal costs nothing")
	require.Equal(t, http.StatusOK, s.call("/quote").StatusCode, "and what is left can be spent")
}

func (n New) wrongKeys(t *testing.T) {
	s := n.serve(t)
	for i := range 20 {
		a := s.do("GET", "/quote", "", append(spoofs(i), "X-API-Key", fmt.Sprint(i))...)
		require.Equal(t, http.StatusUnauthorized, a.StatusCode)
	}
	s.do("GET", "/export", "", append(spoofs(20), "X-API-Key", "20")...).requireRefused(t, "api_unauthenticated/ip")
	require.Equal(t, http.StatusOK, s.call("/quote").StatusCode, "a good key from the same address")
}
