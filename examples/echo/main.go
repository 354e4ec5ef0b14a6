package main

import (
	"crypto/rand"
	"log"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
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
	e := newEcho()
	e.POST("/login", login(users), use(edge.Guard("login", httpguard.Field("email"))))
	api := e.Group("", withKey(users, g))
	api.GET("/quote", quote, perKey(edge, 1))
	api.GET("/export", quote, perKey(edge, 5))
	return clients(e), nil // outside, so that whatever echo does knows the client
}

// newEcho is echo as it should be: c.RealIP, and so echo's logger, knows the same
// client as the limits do. Versions before 4.16 believe any X-Forwarded-For as
// long as no IPExtractor is set.
func newEcho() *echo.Echo {
	e := echo.New()
	e.IPExtractor = func(r *http.Request) string { return httpguard.ClientIP(r).String() }
	e.Pre(middleware.RemoveTrailingSlash())
	e.Use(middleware.Recover())
	return e
}

// use makes echo middleware of net/http's, as echo.WrapMiddleware does, but has an
// error answered inside of it. An Edge settles by the answer: with WrapMiddleware
// alone, a handler that returns echo.ErrUnauthorized has answered nothing yet,
// which would be taken for a success.
func use(m func(http.Handler) http.Handler) echo.MiddlewareFunc {
	wrap := echo.WrapMiddleware(m)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return wrap(func(c echo.Context) error {
			if err := next(c); err != nil {
				c.Error(err)
			}
			return nil
		})
	}
}

// login compares the password. The Edge in front has charged the attempt, and
// gives the charge back if the answer is 2xx.
func login(users *accounts.Accounts) echo.HandlerFunc {
	return func(c echo.Context) error {
		account := httpguard.PassFrom(c.Request().Context()).Account
		if !users.Verify(account, c.FormValue("password")) {
			return echo.NewHTTPError(http.StatusUnauthorized, "wrong e-mail address or password")
		}
		return c.String(http.StatusOK, "welcome") // start the session here
	}
}

// keyID is the name in echo's context of the id of a good API key.
const keyID = "key id"

// withKey lets through who has a good API key. Others are limited by address.
func withKey(users *accounts.Accounts, g *guard.Guard) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			if id, ok := users.ByKey(r.Header.Get("X-API-Key")); ok {
				c.Set(keyID, id)
				return next(c)
			}
			pass, err := g.Check(r.Context(), guard.Attempt{Action: "api_unauthenticated", IP: httpguard.ClientIP(r)})
			if err != nil {
				httpguard.Refuse(c.Response(), r, err)
				return nil
			}
			pass.Fail(r.Context())
			return echo.NewHTTPError(http.StatusUnauthorized, "send an API key as X-API-Key")
		}
	}
}

// perKey charges a call to the key that withKey found.
func perKey(edge *httpguard.Edge, cost int64) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			return use(edge.Limit(func(*http.Request) (guard.Attempt, bool) {
				id, ok := c.Get(keyID).(string)
				return guard.Attempt{Action: "api", APIKey: id, Cost: cost}, ok
			}))(next)(c)
		}
	}
}

func quote(c echo.Context) error {
	return c.String(http.StatusOK, "patience is bitter, its fruit is sweet")
}
