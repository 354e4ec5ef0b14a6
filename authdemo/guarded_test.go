package authdemo

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"authguard/authdemo/password"
	"authguard/guard/guardtest"
)

// guarded are the routes that ask the guard, and the fields that they are sent.
var guarded = map[string][]string{
	"POST /login":                  {"email", owner, "password", "guess"},
	"POST /register":               {"email", "new@example.com", "password", "a good password"},
	"POST /register/confirm":       {"token", "t", "password", "a good password"},
	"POST /password-reset":         {"email", owner},
	"POST /password-reset/confirm": {"token", "t", "password", "a good password"},
	"POST /account/password":       {"current", "guess", "new", "new words of mine"},
	"POST /otp":                    {"code", "guess"},
	"POST /account/otp":            {"current", "guess"},
	"POST /account/otp/confirm":    {"code", "guess"},
	"POST /account/otp/remove":     {"current", "guess", "code", "guess"},
	"GET /api/quote":               nil,
	"GET /api/export":              nil,
}

// unguarded are the others, and why.
var unguarded = map[string]string{
	"GET /healthz": "a probe", "GET /readyz": "a probe", "GET /style.css": "no secret", "GET /login.js": "no secret", "GET /solver.js": "no secret", "GET /": "a page", "GET /login": "a page", "GET /otp": "a page",
	"GET /register": "a page", "GET /register/confirm": "a page", "GET /password-reset": "a page", "GET /account": "a page", "GET /me": "a session",
	"GET /password-reset/confirm": "a page; what its token may do is TestOpeningLinksIsChargedToTheAddress",
	"POST /logout":                "ends a session", "POST /api/keys": "a session, five keys in all", "POST /account/devices/revoke": "a session", "GET /dev/outbox": "development mode",
	"GET /metrics": "this machine; from others its token is what TestTheOperatorsTokenCannotBeTriedOut tries",
}

// over has the limits kept by a store of guardtest.
func over(store *guardtest.Store) func(*Config) { return func(c *Config) { c.Store = store } }

// MO-06, MO-07, HD-11: every route is either guarded, and then asks the guard
// once, before any hash is computed, and refuses as JSON and as a page with a
// Retry-After; or it is known to need no guard, and charges nobody (MC-05).
func TestEveryRouteIsGuardedOrKnownToNeedNoGuard(t *testing.T) {
	store := guardtest.Open(t)
	w := newWorld(t, development, over(store))
	plain := w.withOwner().loggedIn("127.0.0.1")
	key := plain.newKey()
	plain.begin()
	w.restore(other)
	w.turnOn(other)
	for _, accept := range []string{"application/json", browser} {
		for _, apiKey := range []string{"", "wrong", key} {
			guardtest.EveryRoute(t, guardtest.Table{
				Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
					asked := len(store.Attempts())
					w.svc.ServeHTTP(rw, r)
					require.LessOrEqual(t, len(store.Attempts())-asked, 1, r.URL.Path)
					if rw.Header().Get("Retry-After") != "" {
						require.Equal(t, accept == browser, strings.HasPrefix(rw.Header().Get("Content-Type"), "text/html"), r.URL.Path)
					}
				}),
				Store: store,
				Routes: slices.DeleteFunc(guardtest.ChiRoutes(w.svc.handler.(chi.Routes)), func(route string) bool {
					return route == "POST /dev/attack" // sends guesses in at the front door
				}),
				Guarded:   slices.Sorted(maps.Keys(guarded)),
				Unguarded: unguarded,
				Request: func(method, path string) *http.Request {
					c := w.from("127.0.0.1").accepting("application/json")
					email := owner
					if path == "/otp" {
						email = other // who owes a code now
					}
					require.Equal(t, http.StatusOK, c.login(email, ownerPassword).Code)
					c.accepting(accept)
					c.header.Set("X-API-Key", apiKey)
					return c.request(method, path, "application/json", body(guarded[method+" "+path]))
				},
				Verified: func() int64 { return w.svc.Hasher().Computed() + w.svc.codes.Compared() },
			})
		}
	}
}

// MO-06: and what each is charged adds up, so that it refuses in the end.
func TestEveryGuardedRouteRefusesInTheEnd(t *testing.T) {
	w := newWorld(t, development).withOwner()
	c := w.loggedIn("127.0.0.1")
	c.begin()
	w.restore(other)
	w.turnOn(other)
	half := w.from("127.0.0.1")
	half.login(other, ownerPassword)
	for route, fields := range guarded {
		method, path, _ := strings.Cut(route, " ")
		c, refused := c, false
		if path == "/otp" {
			c = half
		}
		c.addr = "198.51.100.9"
		for i := 0; i <= 300 && !refused; i++ {
			refused = c.send(method, path, "application/json", body(fields)).Code == http.StatusTooManyRequests
		}
		require.True(t, refused, route)
	}
}

// RC-01, MO-06, MO-07: five guesses from any number of addresses, at one instant
// and in any spelling of the request that the router takes.
func TestGuessesAtAPasswordAreBounded(t *testing.T) {
	for _, path := range []string{"/login", "/account/password"} {
		w := newWorld(t, func(c *Config) { c.Password = password.Default() }).withOwner() // slow, so that attempts meet
		c, n := w.loggedIn("192.0.2.1"), 0
		guardtest.Bounded(t, guardtest.Target{
			Handler: w.svc,
			Request: func() *http.Request {
				n++
				c.addr = fmt.Sprintf("203.0.%d.%d", n/250, n%250)
				return c.request(http.MethodPost, path, "application/json", body(guarded["POST "+path]))
			},
			Verified: w.svc.Hasher().Computed,
			Limit:    5,
		})
	}
}
