package prove

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/bcrypt"

	"authguard/examples/accounts"
	"authguard/guard"
	"authguard/limiter/memstore"
	"authguard/policies"
)

// A New makes an application.
type New func(g *guard.Guard, users *accounts.Accounts, proxies []netip.Prefix) (http.Handler, error)

// Handler is a fresh application with the presets. Its limits' clock stands still.
func (n New) Handler(t *testing.T, users *accounts.Accounts, proxies ...string) http.Handler {
	t.Helper()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stopped := func() time.Time { return start }
	secret := make([]byte, 32)
	rand.Read(secret)
	g, err := guard.New(guard.Config{
		Store: memstore.New(memstore.Config{Now: stopped}), Secret: secret, Policies: policies.Default(), Now: stopped,
	})
	require.NoError(t, err)
	var trusted []netip.Prefix
	for _, p := range proxies {
		trusted = append(trusted, netip.MustParsePrefix(p))
	}
	h, err := n(g, users, trusted)
	require.NoError(t, err)
	return h
}

// Users are the accounts of one test, with a hash that costs it little.
func Users(t *testing.T) *accounts.Accounts {
	t.Helper()
	users, err := accounts.New(bcrypt.MinCost)
	require.NoError(t, err)
	return users
}

// Login is a request to log in, to be sent to a handler.
func Login(email, password string) *http.Request {
	r := httptest.NewRequest("POST", "/login", strings.NewReader(form(email, password)))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}

func form(email, password string) string {
	return url.Values{"email": {email}, "password": {password}}.Encode()
}

// service is an application behind a real server.
type service struct {
	t   *testing.T
	url string
}

func (n New) serve(t *testing.T, proxies ...string) service {
	t.Helper()
	server := httptest.NewServer(n.Handler(t, Users(t), proxies...))
	t.Cleanup(server.Close)
	return service{t, server.URL}
}

// answer is a response, read.
type answer struct {
	*http.Response
	text string
}

// requireRefused requires a 429 that says when, twice.
func (a answer) requireRefused(t *testing.T, rule string) {
	t.Helper()
	require.Equal(t, http.StatusTooManyRequests, a.StatusCode, a.text)
	require.Equal(t, "application/problem+json", a.Header.Get("Content-Type"))
	var p struct {
		RetryAfter json.Number `json:"retry_after"`
		Violated   []string    `json:"violated-policies"`
	}
	require.NoError(t, json.Unmarshal([]byte(a.text), &p))
	require.Regexp(t, `^[1-9][0-9]*$`, a.Header.Get("Retry-After"))
	require.Equal(t, a.Header.Get("Retry-After"), p.RetryAfter.String())
	require.Contains(t, p.Violated, rule)
}

// do sends a request, with headers in pairs of name and value.
func (s service) do(method, path, body string, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	require.NoError(s.t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return answer{resp, string(text)}
}

func (s service) login(path, email, password string, headers ...string) answer {
	s.t.Helper()
	return s.do("POST", path, form(email, password), headers...)
}

func (s service) call(path string, headers ...string) answer {
	s.t.Helper()
	return s.do("GET", path, "", append(headers, "X-API-Key", accounts.Key)...)
}
