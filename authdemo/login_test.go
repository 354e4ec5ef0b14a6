package authdemo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/authdemo/password"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter"
)

func TestLogin(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.from("198.51.100.9")
	rec := c.login("  Owner@EXAMPLE.com ", ownerPassword)
	require.Equal(t, http.StatusOK, rec.Code)
	assert.JSONEq(t, `{"email":"owner@example.com"}`, rec.Body.String())

	cookie := c.cookies["__Host-authdemo_session"]
	require.NotNil(t, cookie)
	assert.True(t, cookie.HttpOnly)
	assert.True(t, cookie.Secure)
	assert.Equal(t, http.SameSiteLaxMode, cookie.SameSite)
	assert.Equal(t, "/", cookie.Path)
	assert.NotContains(t, cookie.Value, "owner")

	assert.JSONEq(t, `{"email":"owner@example.com"}`, c.get("/me").Body.String())
	assert.Equal(t, http.StatusNoContent, c.post("/logout").Code)
	assert.Equal(t, http.StatusUnauthorized, c.get("/me").Code)
	c.cookies["__Host-authdemo_session"] = cookie
	assert.Equal(t, http.StatusUnauthorized, c.get("/me").Code, "the session itself is over")
}

func TestLoginRenewsTheSession(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.from("198.51.100.9")
	c.login(owner, ownerPassword)
	first := c.cookies["__Host-authdemo_session"]
	c.login(owner, ownerPassword)
	assert.NotEqual(t, first.Value, c.cookies["__Host-authdemo_session"].Value)
	c.cookies["__Host-authdemo_session"] = first
	assert.Equal(t, http.StatusUnauthorized, c.get("/me").Code)
}

func TestSessionsEnd(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.from("198.51.100.9")
	c.login(owner, ownerPassword)
	w.advance(sessionLifetime - time.Minute)
	assert.Equal(t, http.StatusOK, c.get("/me").Code)
	w.advance(time.Minute)
	assert.Equal(t, http.StatusUnauthorized, c.get("/me").Code)
}

// EN-01, EN-02, MO-07, CF-04
func TestUnknownAccountsAreTreatedAsKnownOnes(t *testing.T) {
	w := newWorld(t).withOwner()
	answers := make(map[string][]*httptest.ResponseRecorder)
	hashes := make(map[string]int64)
	for _, email := range []string{owner, "nobody@example.com"} {
		before := w.svc.Hasher().Computed()
		for i := range 7 {
			// Another address each time: it is the account that is limited.
			answers[email] = append(answers[email], w.from(fmt.Sprintf("198.51.100.%d", i)).login(email, "guess"))
		}
		hashes[email] = w.svc.Hasher().Computed() - before
	}
	for i, a := range answers[owner] {
		same(t, a, answers["nobody@example.com"][i])
	}
	assert.EqualValues(t, map[string]int64{owner: 5, "nobody@example.com": 5}, hashes, "a refused attempt computes no hash")
	assert.JSONEq(t, `{"error":"invalid_credentials"}`, answers[owner][4].Body.String())
	assert.Equal(t, http.StatusTooManyRequests, answers[owner][5].Code)
	assert.Equal(t, "900", answers[owner][5].Header().Get("Retry-After"))
	assert.Contains(t, answers[owner][5].Body.String(), `"login/account"`)

	w.advance(15 * time.Minute)
	assert.Equal(t, http.StatusOK, w.from("192.0.2.1").login(owner, ownerPassword).Code)
}

func TestSuccessesAreNotCounted(t *testing.T) {
	w := newWorld(t).withOwner()
	for range 20 {
		require.Equal(t, http.StatusOK, w.from("198.51.100.9").login(owner, ownerPassword).Code)
	}
}

// AC-03
func TestSpellingsShareOneBudget(t *testing.T) {
	w := newWorld(t).withOwner()
	for i, spelling := range []string{owner, "OWNER@example.com", "ⓞwner@example.com", "ｏwner@example.com", " owner@example.com"} {
		require.Equal(t, http.StatusUnauthorized, w.from("198.51.100.9").login(spelling, "guess").Code, i)
	}
	assert.Equal(t, http.StatusTooManyRequests, w.from("198.51.100.9").login("oWner@example.com", ownerPassword).Code)
}

// AC-07
func TestNoNameLocksNobodyOut(t *testing.T) {
	w := newWorld(t).withOwner()
	for _, name := range []string{"", "", "", " ", "", "\u200b", "", strings.Repeat("x", 300), "a\x00b"} {
		before := w.svc.Hasher().Computed()
		assert.Equal(t, http.StatusUnauthorized, w.from("198.51.100.9").login(name, "guess").Code)
		assert.EqualValues(t, 1, w.svc.Hasher().Computed()-before, "as much work as for a name")
	}
	assert.Equal(t, http.StatusOK, w.from("198.51.100.9").get("/login").Code)
	assert.Equal(t, http.StatusOK, w.from("192.0.2.1").login(owner, ownerPassword).Code)
}

// AC-10, PR-01
func TestMalformedBodiesAreChargedToTheAddress(t *testing.T) {
	byAddress := guard.Rule{Name: "ip", By: guard.ByIP, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 5, Window: time.Minute}}}
	byAccount := guard.Rule{Name: "account", By: guard.ByAccount, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 1, Window: time.Minute}}}
	w := newWorld(t, only(actLogin, byAddress, byAccount)).withOwner()
	c := w.from("198.51.100.9")
	for body, want := range map[string]int{
		`{"email":"owner@example.com","email":"b@example.com","password":"x"}`: http.StatusBadRequest,
		`{"email":["owner@example.com"],"password":"x"}`:                       http.StatusBadRequest,
		`{"email":"owner@example.com","password":"x","user":"b"}`:              http.StatusBadRequest,
		`{"email":"owner@example.com"`:                                         http.StatusBadRequest,
		`{"email":"` + strings.Repeat("x", 9000) + `"}`:                        http.StatusRequestEntityTooLarge,
	} {
		rec := c.send(http.MethodPost, "/login?email=owner@example.com", "application/json", body)
		assert.Equal(t, want, rec.Code, body)
	}
	assert.Equal(t, http.StatusTooManyRequests, c.send(http.MethodPost, "/login", "text/plain", "x").Code)
	assert.Zero(t, w.svc.Hasher().Computed()-1, "no hash but the owner's own")
	assert.Equal(t, http.StatusUnsupportedMediaType, w.from("192.0.2.1").send(http.MethodPost, "/login", "text/plain", "x").Code)
	assert.Equal(t, http.StatusOK, w.from("192.0.2.1").login(owner, ownerPassword).Code, "the account was not charged")
}

func TestFullGateGivesTheAccountItsChargeBack(t *testing.T) {
	byAccount := guard.Rule{Name: "account", By: guard.ByAccount, Counts: guard.Failures,
		Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 1, Window: time.Minute}}}
	byAddress := guard.Rule{Name: "ip", By: guard.ByIP, Counts: guard.Attempts,
		Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 2, Window: time.Minute}}}
	w := newWorld(t, only(actLogin, byAccount, byAddress), func(c *Config) {
		c.Gate = password.GateConfig{Slots: 1}
	}).withOwner()
	leave, err := w.svc.gate.Enter(t.Context(), password.Client{Addr: httpguard.ClientIP(httptest.NewRequest(http.MethodGet, "/", nil))})
	require.NoError(t, err)
	c := w.from("198.51.100.9")
	for range 2 {
		rec := c.login(owner, ownerPassword)
		assert.Equal(t, http.StatusServiceUnavailable, rec.Code)
		assert.NotEmpty(t, rec.Header().Get("Retry-After"))
	}
	leave()
	assert.Equal(t, http.StatusTooManyRequests, c.login(owner, ownerPassword).Code, "the address has paid for filling the gate")
	assert.Equal(t, http.StatusOK, w.from("192.0.2.1").login(owner, ownerPassword).Code)
}

func TestHangingUpAtTheGateIsNotFree(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Gate = password.GateConfig{Slots: 1, Waiting: 64, PerAddress: 32, MaxWait: time.Minute}
	}).withOwner()
	leave, err := w.svc.gate.Enter(t.Context(), password.Client{Addr: netip.MustParseAddr("192.0.2.1")})
	require.NoError(t, err)
	for range 5 {
		ctx, hangUp := context.WithCancel(t.Context())
		r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/login", strings.NewReader(body([]string{"email", owner, "password", "guess"})))
		r.Host = "login.example.com"
		r.Header.Set("Content-Type", "application/json")
		var wg sync.WaitGroup
		wg.Go(func() { w.svc.ServeHTTP(httptest.NewRecorder(), r) })
		require.Eventually(t, func() bool { return w.svc.gate.Len() == 1 }, 10*time.Second, time.Millisecond)
		hangUp()
		wg.Wait()
	}
	leave()
	assert.Equal(t, http.StatusTooManyRequests, w.from("198.51.100.9").login(owner, ownerPassword).Code)
	assert.NotContains(t, w.log.String(), "level=ERROR")
}

func TestLoginInABrowser(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.from("198.51.100.9").accepting(browser)
	rec := c.postForm("/login", "email", owner, "password", "<guess>")
	assert.Equal(t, http.StatusUnauthorized, rec.Code)
	assert.Contains(t, rec.Body.String(), `role="alert">The e-mail address or the password is wrong.`)
	assert.Contains(t, rec.Body.String(), `value="owner@example.com"`)
	assert.NotContains(t, rec.Body.String(), "guess")

	rec = c.postForm("/login", "email", owner, "password", ownerPassword)
	assert.Equal(t, http.StatusSeeOther, rec.Code)
	assert.Equal(t, "/account", rec.Header().Get("Location"))
	assert.Contains(t, c.get("/account").Body.String(), owner)
	assert.Equal(t, "/login?notice=logout", c.postForm("/logout").Header().Get("Location"))
	assert.Contains(t, c.get("/login?notice=logout").Body.String(), `role="status">You are logged out.`)
	assert.Equal(t, "/login", c.get("/account").Header().Get("Location"))

	c = w.from("192.0.2.1").accepting(browser)
	for range 4 {
		c.postForm("/login", "email", owner, "password", "guess")
	}
	rec = c.postForm("/login", "email", owner, "password", "guess")
	assert.Equal(t, http.StatusTooManyRequests, rec.Code)
	assert.Contains(t, rec.Header().Get("Content-Type"), "text/html")
	assert.Contains(t, rec.Body.String(), "Try again in 15 minutes.")
}

// EN-02, EN-03: run with -benchtime=400x; the two medians are within ten per
// cent, warm and cold.
func BenchmarkRefusal(b *testing.B) {
	w := newWorld(b, only(actLogin, guard.Rule{Name: "ip", By: guard.ByIP, Effect: guard.Observe,
		Limits: []limiter.Limit{limiter.SlidingWindowCounter{Limit: 1, Window: time.Minute}}}),
		func(c *Config) { c.Password = password.Default() }).withOwner()
	c := w.from("198.51.100.9")
	timed := func(email string) time.Duration {
		start := time.Now()
		c.login(email, "guess")
		return time.Since(start)
	}
	known := []time.Duration{timed(owner)}
	unknown := []time.Duration{timed("nobody@example.com")}
	for b.Loop() {
		// In random order: the collector likes to come every second time.
		if rand.IntN(2) == 0 {
			known = append(known, timed(owner))
		} else {
			unknown = append(unknown, timed("nobody@example.com"))
		}
	}
	b.ReportMetric(float64(median(known).Microseconds()), "known-µs")
	b.ReportMetric(float64(median(unknown).Microseconds()), "unknown-µs")
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}
