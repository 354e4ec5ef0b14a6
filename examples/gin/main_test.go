package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gin-gonic/gin"
	"github.com/stretchr/testify/require"

	"authguard/examples/accounts"
	"authguard/examples/internal/prove"
	"authguard/guard/guardtest"
)

func init() { gin.SetMode(gin.TestMode) } // or it lists all routes in each test

func TestTheExampleIsGuarded(t *testing.T) {
	prove.Guarded(t, newHandler, "/login?x=1", "/%6cogin", "/login/")
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

// c.ClientIP of a gin as it comes is whatever a client says.
func TestGinsClientIPBelievesNoHeader(t *testing.T) {
	seen := func(e *gin.Engine) (ip string) {
		e.GET("/", func(c *gin.Context) { ip = c.ClientIP() })
		r := httptest.NewRequest("GET", "/", nil) // from 192.0.2.1
		for _, name := range []string{"X-Forwarded-For", "X-Real-IP", "X-Appengine-Remote-Addr", "CF-Connecting-IP"} {
			r.Header.Set(name, "203.0.113.9")
		}
		e.ServeHTTP(httptest.NewRecorder(), r)
		return ip
	}
	require.Equal(t, "203.0.113.9", seen(gin.New()), "otherwise newEngine is out of date")
	require.Equal(t, "192.0.2.1", seen(newEngine()))
}
