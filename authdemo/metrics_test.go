package authdemo

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/policies"
)

const adminToken = "an operator's token"

func operated(c *Config) { c.AdminToken = adminToken }

// presenting is a client far away that sends a token.
func (w *world) presenting(addr, token string) *client {
	c := w.from(addr)
	c.header.Set("Authorization", "Bearer "+token)
	return c
}

// counters are the lines of what a guard has counted, read from this machine.
func (w *world) counters() []string {
	w.Helper()
	c := w.from("127.0.0.1")
	c.host = "127.0.0.1:8080"
	rec := c.get("/metrics")
	require.Equal(w, http.StatusOK, rec.Code)
	return regexp.MustCompile(`(?m)^authguard_\w+_total\{.*$`).FindAllString(rec.Body.String(), -1)
}

// since are the counters that differ from before.
func (w *world) since(before []string) (changed []string) {
	w.Helper()
	for _, line := range w.counters() {
		if !slices.Contains(before, line) {
			changed = append(changed, line)
		}
	}
	return changed
}

func TestMetricsAreForThisMachineAndOperators(t *testing.T) {
	w := newWorld(t, operated)
	here := w.from("127.0.0.1")
	here.host = "localhost:8080"
	rec := here.get("/metrics")
	require.Equal(t, http.StatusOK, rec.Code)
	assert.Contains(t, rec.Header().Get("Content-Type"), "text/plain")
	for _, name := range []string{"authguard_attempts_total", "authguard_memstore_bytes", "go_goroutines", "process_open_fds"} {
		assert.Contains(t, rec.Body.String(), "\n"+name)
	}

	for _, name := range []string{"Via", "X-Forwarded-For", "Forwarded", "X-Real-IP", "True-Client-IP"} {
		c := w.from("127.0.0.1")
		c.host = "localhost:8080"
		c.header.Set(name, "127.0.0.1")
		assert.Equal(t, http.StatusNotFound, c.get("/metrics").Code, name)
	}
	assert.Equal(t, http.StatusNotFound, w.from("127.0.0.1").get("/metrics").Code, "a page whose name somebody points here")
	assert.Equal(t, http.StatusNotFound, w.from("198.51.100.9").get("/metrics").Code)
	assert.Equal(t, http.StatusOK, w.presenting("198.51.100.9", adminToken).get("/metrics").Code)
	wrong := w.presenting("198.51.100.9", adminToken+"?").get("/metrics")
	assert.JSONEq(t, `{"error":"not_found"}`, wrong.Body.String())

	none := newWorld(t)
	for _, token := range []string{"", "undefined", adminToken} {
		assert.Equal(t, http.StatusNotFound, none.presenting("198.51.100.9", token).get("/metrics").Code)
	}
	assert.NotContains(t, w.log.String(), adminToken)
}

// The right token is refused, too, once too many wrong ones have come, but it may
// itself come as often as a Prometheus does.
func TestTheOperatorsTokenCannotBeTriedOut(t *testing.T) {
	w := newWorld(t, operated)
	for range 100 {
		require.Equal(t, http.StatusOK, w.presenting("198.51.100.9", adminToken).get("/metrics").Code)
	}
	for range 10 {
		require.Equal(t, http.StatusNotFound, w.presenting("198.51.100.9", "a guess at the token").get("/metrics").Code)
	}
	rec := w.presenting("198.51.100.9", adminToken).get("/metrics")
	require.Equal(t, http.StatusTooManyRequests, rec.Code)
	require.Contains(t, rec.Body.String(), `"admin/ip"`)
	require.Equal(t, "900", rec.Header().Get("Retry-After"))
	require.Equal(t, http.StatusOK, w.presenting("198.51.100.10", adminToken).get("/metrics").Code)
	w.advance(15 * time.Minute)
	require.Equal(t, http.StatusOK, w.presenting("198.51.100.9", adminToken).get("/metrics").Code)
}

// OB-06: whether an account exists makes no difference to what is counted.
func TestUnknownAccountsAreCountedLikeKnownOnes(t *testing.T) {
	guess := func(email string) (changed []string) {
		w := newWorld(t).withOwner()
		before := w.counters()
		for range 7 {
			w.from("198.51.100.9").login(email, "guess")
		}
		w.from("198.51.100.9").post("/password-reset", "email", email)
		w.svc.mails.flush(t.Context())
		return slices.DeleteFunc(w.since(before), func(line string) bool { return strings.Contains(line, "memstore") })
	}
	known := guess(owner)
	require.Contains(t, known, `authguard_attempts_total{action="login",outcome="admitted"} 5`)
	require.Contains(t, known, `authguard_attempts_total{action="login",outcome="refused"} 2`)
	require.Contains(t, known, `authguard_settled_total{action="login",outcome="failed"} 5`)
	require.Contains(t, known, `authguard_denials_total{action="login",effect="deny",rule="account"} 2`)
	require.Equal(t, known, guess("nobody@example.com"))
}

func TestAShortAdminTokenIsRefused(t *testing.T) {
	_, err := New(t.Context(), Config{DB: "none", Development: true, Policies: policies.Default(), AdminToken: "fifteen bytes !"})
	require.EqualError(t, err, "authdemo: Config.AdminToken has 15 bytes, want at least 16")
}

// What proxies are trusted to say of an address holds for operators, too.
func TestGuessesBehindAProxyAreTheClients(t *testing.T) {
	w := newWorld(t, operated, func(c *Config) {
		c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	behind := func(addr string) *httptest.ResponseRecorder {
		c := w.presenting("127.0.0.1", "a guess at the token")
		c.header.Set("X-Forwarded-For", addr)
		return c.get("/metrics")
	}
	for range 10 {
		require.Equal(t, http.StatusNotFound, behind("198.51.100.9").Code)
	}
	require.Equal(t, http.StatusTooManyRequests, behind("198.51.100.9").Code)
	require.Equal(t, http.StatusNotFound, behind("198.51.100.10").Code)
}
