package main

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"

	"github.com/labstack/echo/v4"
	"github.com/stretchr/testify/require"

	"authguard/examples/accounts"
	"authguard/examples/internal/prove"
	"authguard/guard/guardtest"
	"authguard/guard/httpguard"
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

// Echo's logger and the limits know the same client: directly, and behind a proxy.
func TestEchosRealIPIsTheClient(t *testing.T) {
	for _, c := range []struct {
		proxies []netip.Prefix
		want    string
	}{
		{nil, "192.0.2.1"},
		{[]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}, "198.51.100.1"},
	} {
		var ip string
		e := newEcho()
		e.GET("/", func(c echo.Context) error { ip = c.RealIP(); return nil })
		clients, err := httpguard.Clients{TrustedProxies: c.proxies}.Middleware()
		require.NoError(t, err)
		r := httptest.NewRequest("GET", "/", nil) // from 192.0.2.1
		r.Header.Set("X-Real-IP", "203.0.113.9")
		r.Header.Set("X-Forwarded-For", "203.0.113.9, 198.51.100.1")
		clients(e).ServeHTTP(httptest.NewRecorder(), r)
		require.Equal(t, c.want, ip)
	}
}
