package adminapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/adminapi"
	"authguard/limiter"
	"authguard/limiter/memstore"
	"authguard/policies"
)

const token = "the operators' token"

var (
	ctx    = context.Background()
	secret = []byte("a secret of thirty-two bytes !!!")
	here   = netip.MustParseAddr("198.51.100.9")
)

func newGuard(t *testing.T, store limiter.Store) *guard.Guard {
	t.Helper()
	g, err := guard.New(guard.Config{Store: store, Secret: secret, Policies: policies.Default()})
	require.NoError(t, err)
	return g
}

// world is a guard with its API, mounted as in an application.
type world struct {
	guard *guard.Guard
	mux   *http.ServeMux
}

func newWorld(t *testing.T) world {
	t.Helper()
	w := world{newGuard(t, memstore.New(memstore.Config{})), http.NewServeMux()}
	api, err := adminapi.New(adminapi.Config{Guard: w.guard, Token: token})
	require.NoError(t, err)
	w.mux.Handle("/admin/", http.StripPrefix("/admin", api))
	return w
}

// send makes a request as an operator does, but for what change changes.
func (w world) send(method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/admin"+path, strings.NewReader(body))
	r.RemoteAddr = "203.0.113.7:1234"
	r.Header.Set("Authorization", "Bearer "+token)
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, c := range change {
		c(r)
	}
	rec := httptest.NewRecorder()
	w.mux.ServeHTTP(rec, r)
	return rec
}

func (w world) fail(t *testing.T, n int, account string) {
	t.Helper()
	for range n {
		pass, err := w.guard.Check(ctx, guard.Attempt{Action: "login", Account: account, IP: here})
		require.NoError(t, err)
		require.NoError(t, pass.Fail(ctx))
	}
}

// Every operation over HTTP, by the client that guardctl uses.
func TestAnOperatorOverHTTP(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.mux)
	defer server.Close()
	client, err := adminapi.NewClient(server.URL+"/admin/", token)
	require.NoError(t, err)
	for name, o := range map[string]adminapi.Operator{"client": client, "guard": adminapi.Of(w.guard)} {
		t.Run(name, func(t *testing.T) { operate(t, w, o, name+"@example.com") })
	}
}

func operate(t *testing.T, w world, o adminapi.Operator, account string) {
	ask := func() adminapi.Report {
		r, err := o.Inspect(ctx, adminapi.Question{Action: "login", Account: strings.ToUpper(account), IP: here})
		require.NoError(t, err)
		return r
	}
	w.fail(t, 5, account)
	r := ask()
	require.Equal(t, "all", r.Clients)
	require.Equal(t, here.String(), r.IP)
	refusing := r.Refusing("untrusted")
	require.Len(t, refusing, 1)
	require.Equal(t, "account", refusing[0].Rule)
	require.Equal(t, "5 per 15m0s", refusing[0].Limit)
	require.EqualValues(t, 5, refusing[0].Used)
	require.InDelta(t, 15*60, refusing[0].Retry, 60)
	require.WithinDuration(t, time.Now().Add(15*time.Minute), refusing[0].NextAt, time.Minute)
	require.Empty(t, r.Refusing("trusted"))

	require.EventuallyWithT(t, func(c *assert.CollectT) {
		list, err := o.Refused(ctx, 10)
		require.NoError(c, err)
		require.Len(c, list, 1)
		require.Equal(c, account, list[0].Name)
	}, 10*time.Second, time.Millisecond)
	require.NoError(t, o.Unlock(ctx, account, "login/streak"))
	require.NotEmpty(t, ask().Refusing("untrusted"))
	require.NoError(t, o.Unlock(ctx, account))
	require.Empty(t, ask().Refusing("untrusted"))

	for _, who := range []guard.Subject{{Account: account}, {IP: here}} {
		require.NoError(t, o.Block(ctx, who, time.Hour))
		for _, class := range []string{"trusted", "untrusted"} {
			refusing = ask().Refusing(class)
			require.Len(t, refusing, 1)
			require.Equal(t, guard.BlockedRule, refusing[0].Rule)
		}
		require.NoError(t, o.Unblock(ctx, who))
		require.Empty(t, ask().Refusing("trusted"))
	}
	require.ErrorContains(t, o.Unlock(ctx, account, "login/nothing"), `has no rule "nothing"`)
	require.ErrorContains(t, o.Block(ctx, guard.Subject{}, time.Hour), "account")
	_, err := o.Inspect(ctx, adminapi.Question{Action: "nothing", Account: account})
	require.ErrorContains(t, err, `no policy for this action: "nothing"`)

	r, err = o.Inspect(ctx, adminapi.Question{Action: "login", Account: account, Device: "no device of theirs"})
	require.NoError(t, err)
	require.Equal(t, "untrusted", r.Clients)
	for _, l := range r.Limits {
		require.NotEqual(t, "trusted", l.Clients)
	}
}

// The API is behind its token and nothing else opens it; what it has is told to
// nobody without.
func TestNobodyGetsInWithoutTheToken(t *testing.T) {
	w := newWorld(t)
	with := func(value ...string) func(*http.Request) {
		return func(r *http.Request) { r.Header["Authorization"] = value }
	}
	for name, change := range map[string]func(*http.Request){
		"none":         with(),
		"empty":        with(""),
		"no scheme":    with(token),
		"other scheme": with("Basic " + token),
		"blank":        with("Bearer "),
		"twice":        with("Bearer "+token, "Bearer "+token),
		"in the query": func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "token=" + token },
		"a cookie": func(r *http.Request) {
			r.Header.Del("Authorization")
			r.AddCookie(&http.Cookie{Name: "token", Value: token})
		},
	} {
		for _, path := range []string{"/refused?n=1", "/inspect", "/nothing", "/"} {
			for _, method := range []string{"GET", "POST", "OPTIONS", "HEAD"} {
				rec := w.send(method, path, `{"account":"bob"}`, change)
				require.Equal(t, http.StatusUnauthorized, rec.Code, "%s: %s %s", name, method, path)
				require.Equal(t, "no-store", rec.Header().Get("Cache-Control"))
				require.JSONEq(t, `{"error":"unauthorized"}`, rec.Body.String())
			}
		}
	}
	require.Equal(t, http.StatusOK, w.send("GET", "/refused?n=1", "").Code, "none of these was a guess")

	for want, c := range map[string]adminapi.Config{
		"Config.Guard is nil":                      {Token: token},
		"Config.Token has 0 bytes":                 {Guard: w.guard},
		"Config.Token has 15 bytes, want at least": {Guard: w.guard, Token: "fifteen bytes !"},
	} {
		_, err := adminapi.New(c)
		require.ErrorContains(t, err, want)
	}
	unbounded, err := guard.New(guard.Config{Store: memstore.New(memstore.Config{}), Secret: secret, Policies: policies.Default()[:1]})
	require.NoError(t, err)
	_, err = adminapi.New(adminapi.Config{Guard: unbounded, Token: token})
	require.ErrorIs(t, err, guard.ErrNoPolicy)
}

// No answer sends an operator, and the token, to a path outside of the API, where a
// router that cleans no paths has mounted it.
func TestNoPathLeadsOutOfTheAPI(t *testing.T) {
	w := newWorld(t)
	api, err := adminapi.New(adminapi.Config{Guard: w.guard, Token: token})
	require.NoError(t, err)
	mounted := http.StripPrefix("/admin", api)
	for _, path := range []string{"//refused?n=1", "/./refused?n=1", "/x/../refused?n=1", "//evil.example/refused", "/refused/?n=1", ""} {
		r := httptest.NewRequest(http.MethodGet, "/admin"+path, nil)
		r.RemoteAddr = "203.0.113.7:1234"
		r.Header.Set("Authorization", "Bearer "+token)
		rec := httptest.NewRecorder()
		mounted.ServeHTTP(rec, r)
		require.Equal(t, http.StatusNotFound, rec.Code, path)
		require.Empty(t, rec.Header().Get("Location"), path)
	}
}

// However many guesses at the token come at once, the policy's number is compared.
func TestTheTokenCannotBeTriedOut(t *testing.T) {
	w := newWorld(t)
	var wrong, refused atomic.Int64
	done := make(chan struct{})
	for range 50 {
		go func() {
			defer func() { done <- struct{}{} }()
			rec := w.send("POST", "/block", `{"account":"bob","for":"1h"}`, func(r *http.Request) { r.Header.Set("Authorization", "Bearer a guess at the token") })
			switch rec.Code {
			case http.StatusUnauthorized:
				wrong.Add(1)
			case http.StatusTooManyRequests:
				refused.Add(1)
			}
		}()
	}
	for range 50 {
		<-done
	}
	require.EqualValues(t, 10, wrong.Load())
	require.EqualValues(t, 40, refused.Load())
	rec := w.send("GET", "/refused?n=1", "")
	require.Equal(t, http.StatusTooManyRequests, rec.Code, "the right one, too")
	require.NotEmpty(t, rec.Header().Get("Retry-After"))
	rec = w.send("GET", "/refused?n=1", "", func(r *http.Request) { r.RemoteAddr = "203.0.113.8:1" })
	require.Equal(t, http.StatusOK, rec.Code)
	listed := must(w.guard.Refused(ctx, 10))(t)
	require.Len(t, listed, 1, "nobody was blocked, and the guesser is listed")
	require.Equal(t, "203.0.113.7/32", listed[0].Name)
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T { require.NoError(t, err); return v }
}

// What a page of another site has a browser send changes nothing, even where the
// browser could be brought to send the token.
func TestNoOtherSiteCanAsk(t *testing.T) {
	w := newWorld(t)
	for name, change := range map[string]func(*http.Request){
		"fetch metadata": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"origin":         func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
	} {
		require.Equal(t, http.StatusForbidden, w.send("POST", "/block", `{"account":"bob","for":"1h"}`, change).Code, name)
	}
	for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"} {
		rec := w.send("POST", "/block", `account=bob&for=1h`, func(r *http.Request) { r.Header.Set("Content-Type", media) })
		require.Equal(t, http.StatusUnsupportedMediaType, rec.Code, media)
	}
	for _, path := range []string{"/block", "/unblock", "/unlock", "/inspect"} {
		require.Equal(t, http.StatusMethodNotAllowed, w.send("GET", path+"?account=bob&for=1h", "").Code)
	}
	require.Empty(t, w.send("OPTIONS", "/block", "").Header().Get("Access-Control-Allow-Origin"))
	require.Empty(t, must(w.guard.Refused(ctx, 10))(t))
}

func TestBodiesAreReadStrictly(t *testing.T) {
	w := newWorld(t)
	for _, tt := range []struct {
		path, body string
		status     int
		detail     string
	}{
		{"/block", `{"account":"bob","for":"1h","more":"x"}`, 400, "and no others"},
		{"/block", `{"account":"bob","account":"eve","for":"1h"}`, 400, "must come once"},
		{"/block", `{"Account":"bob","for":"1h"}`, 400, "and no others"},
		{"/block", `{"account":["bob"],"for":"1h"}`, 400, "must be a string"},
		{"/block", `{"account":"bob","for":"1h"} {}`, 400, "one JSON object"},
		{"/block", `{"account":"bob"}`, 400, "for is"},
		{"/block", `{"account":"bob","for":"3600"}`, 400, "for is"},
		{"/block", `{"account":"bob","for":"-1h"}`, 400, "for is"},
		{"/block", `{"account":"bob","for":"9000h"}`, 400, "for is"},
		{"/block", `{"account":"bob","ip":"192.0.2.1","for":"1h"}`, 400, "not both"},
		{"/block", `{"for":"1h"}`, 400, "want an account or an ip"},
		{"/block", `{"ip":"192.0.2.0/24","for":"1h"}`, 400, "want an address"},
		{"/block", `{"account":"\u0000","for":"1h"}`, 400, "no account"},
		{"/unblock", `{}`, 400, "want an account or an ip"},
		{"/unlock", `{}`, 400, "no account"},
		{"/unlock", `{"account":"bob","actions":"login,"}`, 400, "no policy"},
		{"/inspect", `{"action":"reauth"}`, 400, "none of reauth's rules counts by what is given"},
		{"/inspect", `{"action":"login","ip":"x"}`, 400, "want an address"},
		{"/inspect", `[]`, 400, "one JSON object"},
		{"/inspect", ``, 400, "no policy"},
		{"/inspect", `{"account":"` + strings.Repeat("x", 9000) + `"}`, 413, "8 KiB"},
		{"/refused", ``, 405, ""},
	} {
		rec := w.send("POST", tt.path, tt.body)
		require.Equal(t, tt.status, rec.Code, "%s %s: %s", tt.path, tt.body, rec.Body)
		require.Contains(t, rec.Body.String(), tt.detail, "%s %s", tt.path, tt.body)
		require.Equal(t, "no-store", rec.Header().Get("Cache-Control"))
	}
	for _, n := range []string{"", "0", "-1", "x", "10001"} {
		require.Equal(t, 400, w.send("GET", "/refused?n="+n, "").Code, n)
	}
	rec := w.send("GET", "/refused?n=5", "")
	require.JSONEq(t, `{"refused":[]}`, rec.Body.String())
}

// down is a store that does not answer, and says why in words that are its own.
type down struct{ limiter.Store }

var errDown = errors.New("dial tcp 10.0.0.5:6379: connection refused")

func (down) Peek(context.Context, []limiter.Charge) error { return errDown }

func TestAnOutageIsToldWithoutItsReason(t *testing.T) {
	g := newGuard(t, down{memstore.New(memstore.Config{})})
	api, err := adminapi.New(adminapi.Config{Guard: g, Token: token})
	require.NoError(t, err)
	w := world{g, http.NewServeMux()}
	w.mux.Handle("/admin/", http.StripPrefix("/admin", api))
	rec := w.send("POST", "/inspect", `{"action":"login","account":"bob"}`)
	require.Equal(t, http.StatusServiceUnavailable, rec.Code)
	require.NotContains(t, rec.Body.String(), "10.0.0.5")
	rec = w.send("GET", "/refused?n=1", "")
	require.Equal(t, http.StatusNotImplemented, rec.Code)
	require.Contains(t, rec.Body.String(), "keeps no index")
}

// The token goes to the API and nowhere else.
func TestTheClientKeepsTheTokenToItself(t *testing.T) {
	for _, base := range []string{"", "example.com/admin", "ftp://127.0.0.1", "http://example.com/admin", "http://10.0.0.5/admin", "https://user:pw@example.com", "https://example.com/?x"} {
		_, err := adminapi.NewClient(base, token)
		require.ErrorContains(t, err, "the URL is", base)
	}
	_, err := adminapi.NewClient("https://example.com", "")
	require.ErrorContains(t, err, "no token")

	var elsewhere atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer thief.Close()
	var answer func(http.ResponseWriter, *http.Request)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r) }))
	defer server.Close()
	client, err := adminapi.NewClient(server.URL, token)
	require.NoError(t, err)
	for want, a := range map[string]func(http.ResponseWriter, *http.Request){
		"307": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		},
		"does not take":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"has no such API":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) },
		"refuses operators": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"500":               func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"something else":    func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>") },
		"the answer ended early": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "{")
		},
	} {
		answer = a
		err := client.Unblock(ctx, guard.Subject{Account: "bob"})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), token)
	}
	require.Zero(t, elsewhere.Load())
}
