package main

import (
	"crypto/rand"
	"log"
	"net/http"
	"net/netip"
	"time"

	"github.com/gin-gonic/gin"
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
	e := newEngine()
	e.POST("/login", use(edge.Guard("login", httpguard.Field("email"))), login(users))
	api := e.Group("/", withKey(users, g))
	api.GET("/quote", perKey(edge, 1), quote)
	api.GET("/export", perKey(edge, 5), quote)
	return clients(e), nil // outside, so that whatever gin does knows the client
}

// newEngine is gin as it should be: out of the box it believes anybody who sends
// X-Forwarded-For or X-Real-IP. Now c.ClientIP is only the peer. Who needs the
// client, for a log say, asks httpguard.ClientIP(c.Request).
func newEngine() *gin.Engine {
	e := gin.New()
	e.ForwardedByClientIP = false
	e.Use(gin.Recovery())
	return e
}

// use makes gin middleware of net/http's. An Edge settles by the status that is
// written through its w, so it is told what gin has answered. Whatever answers,
// middleware that renders c.Errors included, must come after use, inside of it.
func use(m func(http.Handler) http.Handler) gin.HandlerFunc {
	return func(c *gin.Context) {
		refused := true
		m(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			refused = false
			c.Request = r
			c.Next()
			w.WriteHeader(c.Writer.Status())
		})).ServeHTTP(c.Writer, c.Request)
		if refused {
			c.Abort()
		}
	}
}

// login compares the password. The Edge in front has charged the attempt, and
// gives the charge back if the answer is 2xx.
func login(users *accounts.Accounts) gin.HandlerFunc {
	return func(c *gin.Context) {
		account := httpguard.PassFrom(c.Request.Context()).Account
		if !users.Verify(account, c.PostForm("password")) {
			c.String(http.StatusUnauthorized, "wrong e-mail address or password")
			return
		}
		c.String(http.StatusOK, "welcome") // start the session here
	}
}

// keyID is the name in gin's context of the id of a good API key.
const keyID = "key id"

// withKey lets through who has a good API key. Others are limited by address.
func withKey(users *accounts.Accounts, g *guard.Guard) gin.HandlerFunc {
	return func(c *gin.Context) {
		if id, ok := users.ByKey(c.GetHeader("X-API-Key")); ok {
			c.Set(keyID, id)
			return
		}
		c.Abort()
		ctx := c.Request.Context()
		pass, err := g.Check(ctx, guard.Attempt{Action: "api_unauthenticated", IP: httpguard.ClientIP(c.Request)})
		if err != nil {
			httpguard.Refuse(c.Writer, c.Request, err)
			return
		}
		pass.Fail(ctx)
		c.String(http.StatusUnauthorized, "send an API key as X-API-Key")
	}
}

// perKey charges a call to the key that withKey found.
func perKey(edge *httpguard.Edge, cost int64) gin.HandlerFunc {
	return func(c *gin.Context) {
		use(edge.Limit(func(*http.Request) (guard.Attempt, bool) {
			id := c.GetString(keyID)
			return guard.Attempt{Action: "api", APIKey: id, Cost: cost}, id != ""
		}))(c)
	}
}

func quote(c *gin.Context) { c.String(http.StatusOK, "patience is bitter, its fruit is sweet") }
