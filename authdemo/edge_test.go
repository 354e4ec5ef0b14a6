package authdemo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
)

func body(nameValue []string) string {
	b, _ := json.Marshal(pairs(nameValue))
	return string(b)
}

func TestPages(t *testing.T) {
	w := newWorld(t, development)
	c := w.from("127.0.0.1").accepting(browser)
	for _, path := range []string{"/", "/login", "/register", "/register/confirm?token=abc", "/password-reset", "/password-reset/confirm?token=abc", "/dev/outbox"} {
		rec := c.get(path)
		assert.Equal(t, http.StatusOK, rec.Code, path)
		h := rec.Header()
		assert.Equal(t, "text/html; charset=utf-8", h.Get("Content-Type"))
		assert.Equal(t, "no-store", h.Get("Cache-Control"))
		assert.Equal(t, "no-referrer", h.Get("Referrer-Policy"))
		assert.Equal(t, "nosniff", h.Get("X-Content-Type-Options"))
		assert.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'")
		assert.Contains(t, h.Get("Content-Security-Policy"), "frame-ancestors 'none'")
		body := rec.Body.String()
		if path == "/login" { // the one page with a script, which is a file of ours
			body = strings.Replace(body, `<script src="/login.js" defer></script>`, "", 1)
		}
		assert.Equal(t, path == "/login", strings.Contains(h.Get("Content-Security-Policy"), "script-src 'self'"))
		assert.NotContains(t, body, "<script")
		assert.NotContains(t, rec.Body.String(), "style=")
	}
	assert.Contains(t, c.get("/style.css").Header().Get("Content-Type"), "text/css")
	assert.NotContains(t, c.get("/?notice=<script>").Body.String(), "script")
	assert.Contains(t, c.get(`/password-reset/confirm?token="><script>`).Body.String(), "&lt;script&gt;")
}

func TestWhatIsNotThere(t *testing.T) {
	c := newWorld(t).from("198.51.100.9")
	rec := c.get("/nothing")
	assert.Equal(t, http.StatusNotFound, rec.Code)
	assert.JSONEq(t, `{"error":"not_found"}`, rec.Body.String())
	rec = c.send(http.MethodDelete, "/login", "", "")
	assert.Equal(t, http.StatusMethodNotAllowed, rec.Code)
	assert.Equal(t, []string{"GET", "HEAD", "POST"}, rec.Header().Values("Allow"))
	rec = c.get("/logout")
	assert.Equal(t, []string{"POST"}, rec.Header().Values("Allow"))
	assert.Equal(t, http.StatusOK, c.send(http.MethodHead, "/login", "", "").Code)
	assert.Contains(t, c.accepting(browser).get("/nothing").Body.String(), "There is no such page.")
}

func TestOtherSitesCannotPost(t *testing.T) {
	w := newWorld(t).withOwner()
	for name, header := range map[string]http.Header{
		"Sec-Fetch-Site": {"Sec-Fetch-Site": {"cross-site"}},
		"same site only": {"Sec-Fetch-Site": {"same-site"}},
		"Origin":         {"Origin": {"https://evil.example"}},
	} {
		c := w.from("198.51.100.9")
		c.header = header
		assert.Equal(t, http.StatusForbidden, c.login(owner, ownerPassword).Code, name)
	}
	// What browsers send from our own pages, whose referrer policy hides the origin.
	c := w.from("198.51.100.9")
	c.header = http.Header{"Sec-Fetch-Site": {"same-origin"}, "Origin": {"null"}}
	assert.Equal(t, http.StatusOK, c.login(owner, ownerPassword).Code)
}

func TestOtherHostsAreNotAnswered(t *testing.T) {
	w := newWorld(t)
	for host, want := range map[string]int{
		"login.example.com": 200, "LOGIN.example.com:443": 200,
		"evil.example": 421, "login.example.com.evil.example": 421, "127.0.0.1": 421, "login.example.com:8080": 421,
	} {
		c := w.from("198.51.100.9")
		c.host = host
		assert.Equal(t, want, c.get("/login").Code, host)
		assert.Equal(t, http.StatusOK, c.get("/healthz").Code, "probes name no host")
	}
	w = newWorld(t, development)
	for host, want := range map[string]int{
		"localhost:8080": 200, "127.0.0.1:8080": 200, "[::1]:8080": 200, "[::1]": 200, "127.9.9.9": 200,
		"evil.example": 421, "localhost.evil.example": 421, "192.0.2.1": 421, "": 421,
	} {
		c := w.from("127.0.0.1")
		c.host = host
		assert.Equal(t, want, c.get("/login").Code, host)
	}
}

func TestDevelopmentPagesAreForThisMachineOnly(t *testing.T) {
	w := newWorld(t, development)
	assert.Equal(t, http.StatusOK, w.from("127.0.0.1").get("/dev/outbox").Code)
	assert.Equal(t, http.StatusOK, w.from("::1").get("/dev/outbox").Code)
	assert.Equal(t, http.StatusNotFound, w.from("198.51.100.9").get("/dev/outbox").Code)
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Via"} {
		c := w.from("127.0.0.1")
		c.header.Set(name, "127.0.0.1")
		assert.Equal(t, http.StatusNotFound, c.get("/dev/outbox").Code, name)
		assert.Equal(t, http.StatusNotFound, c.post("/dev/attack", "from", "one").Code, name)
	}
	assert.Equal(t, http.StatusNotFound, newWorld(t).from("127.0.0.1").get("/dev/outbox").Code)
}

func TestOutboxAndDemoAccount(t *testing.T) {
	w := newWorld(t, development)
	c := w.from("127.0.0.1").accepting("application/json")
	assert.JSONEq(t, `[]`, c.get("/dev/outbox").Body.String())
	c.post("/password-reset", "email", DemoEmail)
	c.post("/register", "email", "new@example.com", "password", "a good password")
	var mails []map[string]string
	require.NoError(t, json.Unmarshal(c.get("/dev/outbox").Body.Bytes(), &mails))
	require.Len(t, mails, 2)
	assert.Equal(t, "new@example.com", mails[0]["to"])
	assert.Equal(t, DemoEmail, mails[1]["to"])
	for _, field := range []string{"subject", "text", "link"} {
		assert.NotEmpty(t, mails[0][field])
	}
	assert.Contains(t, mails[0]["link"], "http://127.0.0.1:8080/register/confirm?token=")
	assert.Equal(t, http.StatusOK, c.login(DemoEmail, DemoPassword).Code)
}

func TestTheDemoAccountIsNotServedToThePublic(t *testing.T) {
	dev := newWorld(t, development)
	cfg := dev.svc.cfg
	cfg.Development, cfg.PublicURL = false, &url.URL{Scheme: "https", Host: "login.example.com"}
	_, err := New(t.Context(), cfg)
	require.ErrorContains(t, err, "published password")

	c := dev.from("127.0.0.1")
	c.login(DemoEmail, DemoPassword)
	require.Equal(t, http.StatusNoContent, c.post("/account/password", "current", DemoPassword, "new", "new words of mine").Code)
	svc, err := New(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, svc.Close(t.Context()))
}

func TestAttackButtons(t *testing.T) {
	for _, from := range []string{"one", "many"} {
		w := newWorld(t, development)
		rec := w.from("127.0.0.1").accepting("application/json").post("/dev/attack", "from", from)
		require.Equal(t, http.StatusOK, rec.Code)
		var results []attackResult
		require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &results))
		require.Len(t, results, 10)
		for i, r := range results {
			want := http.StatusUnauthorized
			if i >= 5 {
				want = http.StatusTooManyRequests
				assert.Equal(t, "900", r.RetryAfter)
			}
			assert.Equal(t, want, r.Status)
		}
		rec = w.from("127.0.0.1").accepting(browser).postForm("/dev/attack", "from", from)
		assert.Contains(t, rec.Body.String(), "<code>429</code>")
		assert.Equal(t, http.StatusBadRequest, w.from("127.0.0.1").post("/dev/attack", "from", "all").Code)
	}
}

// downStore fails like a network store whose server is gone.
type downStore struct{ limiter.Store }

var errDown = errors.New("connection refused")

func (downStore) Take(context.Context, []limiter.Charge) (bool, error) { return false, errDown }
func (downStore) Peek(context.Context, []limiter.Charge) error         { return errDown }

// denying refuses all attempts while the store is down.
func denying(c *Config) {
	c.Store = downStore{c.Store}
	c.Policies = slices.Clone(c.Policies)
	for i := range c.Policies {
		c.Policies[i].Rules = slices.Clone(c.Policies[i].Rules)
		for j := range c.Policies[i].Rules {
			c.Policies[i].Rules[j].OnOutage = guard.OutageDeny
		}
	}
}

func TestWithoutLimitsNobodyIsLetThrough(t *testing.T) {
	w := newWorld(t, denying).withOwner()
	before := w.svc.Hasher().Computed()
	rec := w.from("198.51.100.9").login(owner, ownerPassword)
	assert.Equal(t, http.StatusServiceUnavailable, rec.Code)
	assert.NotEmpty(t, rec.Header().Get("Retry-After"))
	assert.NotContains(t, rec.Body.String(), "refused")
	assert.Equal(t, before, w.svc.Hasher().Computed())
	assert.Equal(t, http.StatusServiceUnavailable, w.from("198.51.100.9").get("/readyz").Code)
	assert.Equal(t, http.StatusOK, w.from("198.51.100.9").get("/healthz").Code)
	assert.Equal(t, http.StatusOK, newWorld(t).from("198.51.100.9").get("/readyz").Code)
}

// ST-07, ST-09: the presets count in the process while the store is down, by its
// share, and the service stays ready.
func TestWithoutTheStoreEachProcessCountsItsShare(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Store, c.Instances = downStore{c.Store}, 2 }).withOwner()
	c := w.from("198.51.100.9")
	assert.Equal(t, http.StatusOK, c.login(owner, ownerPassword).Code)
	for range 2 {
		assert.Equal(t, http.StatusUnauthorized, c.login(owner, "guess").Code, "two of five are this process's")
	}
	rec := c.login(owner, ownerPassword)
	assert.Equal(t, http.StatusTooManyRequests, rec.Code)
	assert.Equal(t, "900", rec.Header().Get("Retry-After"))
	assert.NotContains(t, rec.Body.String(), errDown.Error())
	assert.Equal(t, http.StatusOK, c.get("/readyz").Code)
	assert.Equal(t, 1, strings.Count(w.log.String(), "limits cannot be checked"))
}

func TestPanicsAreAnsweredAndLogged(t *testing.T) {
	w := newWorld(t)
	rec := httptest.NewRecorder()
	w.svc.recoverPanics(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("a fault") })).
		ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/", nil))
	assert.Equal(t, http.StatusInternalServerError, rec.Code)
	assert.NotContains(t, rec.Body.String(), "fault")
	assert.Contains(t, w.log.String(), "a fault")
}
