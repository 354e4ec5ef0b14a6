package authdemo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pquerna/otp/totp"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/guardtest"
)

// second is what the holder of a second factor has.
type second struct {
	key      string
	recovery []string
}

// other has an account beside the owner's in some tests, with the same password.
const other = "other@example.com"

// withFactor gives the owner an account with a second factor.
func (w *world) withFactor() (*world, second) {
	w.Helper()
	return w, w.withOwner().turnOn(owner)
}

// turnOn gives an account a second factor.
func (w *world) turnOn(email string) (f second) {
	w.Helper()
	c := w.from("127.0.0.1")
	require.Equal(w, http.StatusOK, c.login(email, ownerPassword).Code)
	f.key = c.begin()
	f.recovery = c.confirm(w.code(f.key, 0))
	w.advance(time.Minute) // beyond the code that was used
	return f
}

// begin makes the key of an app, and confirm turns it on.
func (c *client) begin() string {
	c.w.Helper()
	rec := c.post("/account/otp", "current", ownerPassword)
	require.Equal(c.w, http.StatusCreated, rec.Code, rec.Body)
	var body struct{ Secret, URI string }
	decode(c.w, rec, &body)
	require.Contains(c.w, body.URI, "otpauth://totp/authguard%20demo:")
	require.Contains(c.w, body.URI, "secret="+body.Secret)
	return body.Secret
}

func (c *client) confirm(code string) []string {
	c.w.Helper()
	rec := c.post("/account/otp/confirm", "code", code)
	require.Equal(c.w, http.StatusOK, rec.Code, rec.Body)
	var body struct {
		Codes []string `json:"recovery_codes"`
	}
	decode(c.w, rec, &body)
	require.Len(c.w, body.Codes, 10)
	return body.Codes
}

// code is the app's, so many time steps from now.
func (w *world) code(key string, steps int) string {
	w.Helper()
	code, err := totp.GenerateCode(key, w.clock().Add(time.Duration(steps)*30*time.Second))
	require.NoError(w, err)
	return code
}

// wrong is a code that is not good now.
func (w *world) wrong(key string) string {
	for i := range 4 { // three are good
		code := fmt.Sprintf("%06d", i)
		if code != w.code(key, -1) && code != w.code(key, 0) && code != w.code(key, 1) {
			return code
		}
	}
	panic("four codes cannot all be one of three")
}

// halfIn has sent the right password, and owes a code.
func (w *world) halfIn(addr string) *client {
	w.Helper()
	c := w.from(addr)
	rec := c.login(owner, ownerPassword)
	require.Equal(w, http.StatusOK, rec.Code)
	require.JSONEq(w, `{"next":"otp"}`, rec.Body.String())
	return c
}

func (c *client) otp(code string) *httptest.ResponseRecorder {
	c.w.Helper()
	return c.post("/otp", "code", code)
}

func TestLoginWithASecondFactor(t *testing.T) {
	w, f := newWorld(t).withFactor()
	c := w.halfIn("198.51.100.9")
	half := c.cookies["__Host-authdemo_session"]
	require.Equal(t, http.StatusUnauthorized, c.otp(w.wrong(f.key)).Code)
	rec := c.otp(w.code(f.key, 0))
	require.Equal(t, http.StatusOK, rec.Code)
	require.JSONEq(t, `{"email":"owner@example.com"}`, rec.Body.String())
	require.NotEqual(t, half.Value, c.cookies["__Host-authdemo_session"].Value)
	require.Equal(t, http.StatusOK, c.get("/me").Code)
	require.Equal(t, http.StatusUnauthorized, c.otp(w.code(f.key, 1)).Code, "no code is owed any more")
	w.advance(time.Hour)
	require.Equal(t, http.StatusOK, c.get("/me").Code, "a session as long as any")

	c.cookies["__Host-authdemo_session"] = half
	require.Equal(t, http.StatusUnauthorized, c.get("/me").Code)
	rec = c.otp(w.code(f.key, 1))
	require.Equal(t, http.StatusUnauthorized, rec.Code)
	require.JSONEq(t, `{"error":"not_logged_in"}`, rec.Body.String(), "the session of the first step is over")
}

func TestTheFirstStepIsGoodForTheCodeAlone(t *testing.T) {
	w, f := newWorld(t).withFactor()
	c := w.from("192.0.2.1")
	require.Equal(t, http.StatusUnauthorized, c.otp(w.code(f.key, 0)).Code, "without a session")
	compared := w.svc.codes.Compared()
	c = w.halfIn("192.0.2.1")
	for route, fields := range guarded {
		if strings.Contains(route, "/account") {
			require.Equal(t, http.StatusUnauthorized, c.post(strings.TrimPrefix(route, "POST "), fields...).Code, route)
		}
	}
	require.Equal(t, http.StatusUnauthorized, c.post("/api/keys").Code)
	require.Equal(t, http.StatusUnauthorized, c.get("/me").Code)
	require.Equal(t, "/login", c.get("/account").Header().Get("Location"))
	require.NotContains(t, c.accepting(browser).get("/").Body.String(), owner)
	require.NotContains(t, c.postForm("/otp", "code", w.wrong(f.key)).Body.String(), owner)
	require.EqualValues(t, 1, w.svc.codes.Compared()-compared)

	t.Run("and takes the place of another session", func(t *testing.T) {
		c := w.halfIn("192.0.2.1")
		require.Equal(t, http.StatusOK, c.otp(w.code(f.key, 0)).Code)
		require.Equal(t, http.StatusOK, c.get("/me").Code)
		require.Equal(t, http.StatusOK, c.login(owner, ownerPassword).Code)
		require.Equal(t, http.StatusUnauthorized, c.get("/me").Code)
	})
	t.Run("for five minutes", func(t *testing.T) {
		c, late := w.halfIn("192.0.2.1"), w.halfIn("192.0.2.1")
		w.advance(awaitedLifetime - 2*time.Second)
		require.Equal(t, http.StatusUnauthorized, c.otp(w.wrong(f.key)).Code)
		require.Equal(t, http.StatusOK, c.otp(w.code(f.key, 0)).Code)
		w.advance(2 * time.Second)
		require.JSONEq(t, `{"error":"not_logged_in"}`, late.otp(w.code(f.key, 1)).Body.String())
	})
	t.Run("and until the password changes", func(t *testing.T) {
		w.advance(time.Minute)
		c, other := w.halfIn("192.0.2.1"), w.halfIn("192.0.2.1")
		require.Equal(t, http.StatusOK, other.otp(w.code(f.key, 0)).Code)
		require.Equal(t, http.StatusNoContent, other.post("/account/password", "current", ownerPassword, "new", "new words of mine").Code)
		require.JSONEq(t, `{"error":"not_logged_in"}`, c.otp(w.code(f.key, 1)).Body.String())
	})
}

// PR-02, PR-03, PR-04, PR-08: the budget is the account's. Another address, another
// login and another code bring no further guess, and the right code is refused
// until the window has aged.
func TestFiveWrongCodesAreAllThereAre(t *testing.T) {
	w, f := newWorld(t).withFactor()
	for i := range 5 {
		require.Equal(t, http.StatusUnauthorized, w.halfIn(fmt.Sprintf("203.0.113.%d", i)).otp(w.wrong(f.key)).Code)
		w.advance(time.Second)
	}
	compared := w.svc.codes.Compared()
	for i := range 894 { // a login, and with it a new session, each second
		rec := w.halfIn(fmt.Sprintf("198.51.%d.%d", i/250, i%250)).otp(w.code(f.key, 0))
		require.Equal(t, http.StatusTooManyRequests, rec.Code)
		require.Equal(t, strconv.Itoa(895-i), rec.Header().Get("Retry-After"))
		require.Contains(t, rec.Body.String(), `"otp/account"`)
		w.advance(time.Second)
	}
	require.Equal(t, compared, w.svc.codes.Compared())
	require.Equal(t, http.StatusTooManyRequests, w.halfIn("192.0.2.1").otp(f.recovery[0]).Code, "a recovery code is no way around")
	w.advance(time.Second)
	require.Equal(t, http.StatusOK, w.halfIn("192.0.2.1").otp(w.code(f.key, 0)).Code)
}

// PR-09: whoever is refused does not learn whether the code was right.
func TestARefusedCodeIsNotLookedAt(t *testing.T) {
	w, f := newWorld(t).withFactor()
	c := w.halfIn("198.51.100.9")
	for range 5 {
		require.Equal(t, http.StatusUnauthorized, c.otp(w.wrong(f.key)).Code)
	}
	compared := w.svc.codes.Compared()
	refused := c.otp(w.wrong(f.key))
	require.Equal(t, http.StatusTooManyRequests, refused.Code)
	for _, code := range []string{w.code(f.key, 0), w.code(f.key, 1), f.recovery[0], "", "x"} {
		same(t, refused, c.otp(code))
	}
	require.Equal(t, compared, w.svc.codes.Compared())
	w.advance(15 * time.Minute)
	require.Equal(t, http.StatusOK, w.halfIn("198.51.100.9").otp(f.recovery[0]).Code, "nor was it used up")
}

// RC-01, PR-03: at one instant, from any number of addresses and in any spelling of
// the request that the router takes.
func TestGuessesAtACodeAreBounded(t *testing.T) {
	for _, code := range []string{"000000", "aaaa-aaaa-aaaa-aaaa"} {
		w, f := newWorld(t).withFactor()
		if code == "000000" {
			code = w.wrong(f.key)
		}
		c, n := w.halfIn("192.0.2.1"), 0
		guardtest.Bounded(t, guardtest.Target{
			Handler: w.svc,
			Request: func() *http.Request {
				n++
				c.addr = fmt.Sprintf("203.0.%d.%d", n/250, n%250)
				return c.request(http.MethodPost, "/otp", "application/json", body([]string{"code", code}))
			},
			Verified: w.svc.codes.Compared,
			Limit:    5,
		})
	}
}

// Nobody but the session says whose code it is: a field that names another account
// is refused, and no other account is charged.
func TestTheSessionSaysWhoseCodeItIs(t *testing.T) {
	w, f := newWorld(t).withFactor()
	c := w.halfIn("198.51.100.9")
	for range 6 {
		require.Equal(t, http.StatusBadRequest, c.post("/otp", "code", w.code(f.key, 0), "email", "victim@example.com").Code)
	}
	require.Zero(t, w.wrongCodes("victim@example.com"))
	require.Zero(t, w.wrongCodes(owner))
	require.Equal(t, http.StatusUnauthorized, c.send(http.MethodPost, "/otp?email=victim@example.com", "application/json", body([]string{"code", "1"})).Code)
	require.Zero(t, w.wrongCodes("victim@example.com"))
	require.EqualValues(t, 1, w.wrongCodes(owner))
}

// wrongCodes is how many wrong codes stand against an account, by the window.
func (w *world) wrongCodes(email string) int64 {
	w.Helper()
	status, err := w.svc.guard.Inspect(w.Context(), guard.Attempt{Action: actOTP, Account: email, IP: netip.MustParseAddr("192.0.2.1")})
	require.NoError(w, err)
	require.Equal(w, "account", status[0].Rule)
	return status[0].Used()
}

func TestACodeIsGoodOnce(t *testing.T) {
	w, f := newWorld(t).withFactor()
	code := w.code(f.key, 0)
	require.Equal(t, http.StatusOK, w.halfIn("192.0.2.1").otp(code).Code)
	require.Equal(t, http.StatusUnauthorized, w.halfIn("192.0.2.1").otp(code).Code)
	require.Equal(t, http.StatusUnauthorized, w.halfIn("192.0.2.1").otp(w.code(f.key, -1)).Code, "nor is one from before it")
	require.Equal(t, http.StatusOK, w.halfIn("192.0.2.1").otp(w.code(f.key, 1)).Code)
	require.Equal(t, http.StatusUnauthorized, w.halfIn("192.0.2.1").otp(f.recovery[3][1:]).Code)
	require.Equal(t, http.StatusOK, w.halfIn("192.0.2.1").otp(f.recovery[3]).Code)
	require.Equal(t, http.StatusUnauthorized, w.halfIn("192.0.2.1").otp(f.recovery[3]).Code)
	require.Equal(t, http.StatusOK, w.halfIn("192.0.2.1").otp(" "+strings.ToUpper(strings.ReplaceAll(f.recovery[4], "-", " "))).Code, "as people type")
}

func TestOneCodeLetsOneInHoweverManyUseItAtOnce(t *testing.T) {
	for name, code := range map[string]func(*world, second) string{
		"app":      func(w *world, f second) string { return w.code(f.key, 0) },
		"recovery": func(_ *world, f second) string { return f.recovery[0] },
	} {
		w, f := newWorld(t).withFactor()
		clients := make([]*client, 20)
		for i := range clients {
			clients[i] = w.halfIn(fmt.Sprintf("203.0.113.%d", i))
		}
		var mu sync.Mutex
		var wg sync.WaitGroup
		codes, right := map[int]int{}, code(w, f)
		for _, c := range clients {
			wg.Go(func() {
				rec := c.otp(right)
				mu.Lock()
				defer mu.Unlock()
				codes[rec.Code]++
			})
		}
		wg.Wait()
		require.Equal(t, 1, codes[http.StatusOK], name)
		require.LessOrEqual(t, codes[http.StatusUnauthorized], 5, name)
		require.Equal(t, 19, codes[http.StatusUnauthorized]+codes[http.StatusTooManyRequests], name)
	}
}

func TestCodesOfTheNeighbouringStepsAreGood(t *testing.T) {
	for steps, want := range map[int]int{-2: http.StatusUnauthorized, -1: http.StatusOK, 0: http.StatusOK, 1: http.StatusOK, 2: http.StatusUnauthorized} {
		w, f := newWorld(t).withFactor()
		w.advance(time.Minute)
		require.Equal(t, want, w.halfIn("192.0.2.1").otp(w.code(f.key, steps)).Code, steps)
	}
}

// EN-01: until the password is right, nothing tells whether a code would be asked for.
func TestAWrongPasswordDoesNotTellOfASecondFactor(t *testing.T) {
	w, _ := newWorld(t).withFactor()
	w.restore(other)
	answers := map[string][]*httptest.ResponseRecorder{}
	for _, email := range []string{owner, other, "nobody@example.com"} {
		before := w.svc.Hasher().Computed()
		for i := range 7 {
			answers[email] = append(answers[email], w.from(fmt.Sprintf("203.0.113.%d", i)).login(email, "guess"))
		}
		require.EqualValues(t, 5, w.svc.Hasher().Computed()-before)
	}
	for i := range 7 {
		same(t, answers[owner][i], answers[other][i])
		same(t, answers[owner][i], answers["nobody@example.com"][i])
	}
	same(t, w.from("192.0.2.1").login(owner, ownerPassword), w.from("192.0.2.1").login(other, ownerPassword))
	require.Zero(t, w.svc.codes.Compared()-1, "none but the one that turned it on")
}

// The right password settles what guesses at it have cost. Those at the code stand.
func TestTheRightPasswordEndsThePasswordsStreakAlone(t *testing.T) {
	w, f := newWorld(t).withFactor()
	for range 2 {
		w.guessAt(owner, 5)
		w.advance(15 * time.Minute)
	}
	c := w.halfIn("192.0.2.1")
	for range 5 {
		c.otp(w.wrong(f.key))
	}
	w.advance(15 * time.Minute)
	for range 30 { // each gives its own charge back
		c = w.halfIn("192.0.2.1")
	}
	for range 5 {
		require.Equal(t, http.StatusUnauthorized, c.otp(w.wrong(f.key)).Code)
	}
	w.guessAt(owner, 5)
	require.NotContains(t, w.from("192.0.2.1").login(owner, ownerPassword).Body.String(), "login/streak")
	require.Contains(t, c.otp(w.code(f.key, 0)).Body.String(), `"otp/streak"`, "ten in a row, whatever logins lay between")
}

func TestARightCodeEndsTheStreak(t *testing.T) {
	w, f := newWorld(t).withFactor()
	for range 3 {
		for range 5 {
			require.Equal(t, http.StatusUnauthorized, w.halfIn("192.0.2.1").otp(w.wrong(f.key)).Code)
		}
		w.advance(15 * time.Minute)
		require.Equal(t, http.StatusOK, w.halfIn("192.0.2.1").otp(w.code(f.key, 0)).Code)
	}
	require.NotContains(t, w.log.String(), "rule=streak")
}

// guessCodes sends wrong codes, each after a login of its own from another address,
// and waits as it is told, until n have been compared.
func (w *world) guessCodes(key string, n int) {
	w.Helper()
	for i, failures := 0, 0; failures < n; i++ {
		rec := w.halfIn(fmt.Sprintf("203.0.%d.%d", i/250, i%250+1)).otp(w.wrong(key))
		if rec.Code == http.StatusUnauthorized {
			failures++
			continue
		}
		require.Equal(w, http.StatusTooManyRequests, rec.Code)
		require.Contains(w, rec.Body.String(), "rate_limited", "after %d failures", failures)
		wait, err := strconv.Atoi(rec.Header().Get("Retry-After"))
		require.NoError(w, err)
		w.advance(time.Duration(wait) * time.Second)
	}
}

// LK-06, PR-09: fifty in a row lock the second factor, and no reset opens it. An
// operator does, or time.
func TestFiftyWrongCodesLockTheSecondFactor(t *testing.T) {
	w, f := newWorld(t).withFactor()
	w.guessCodes(f.key, 50)
	password := ownerPassword
	requireLocked := func() {
		t.Helper()
		c := w.from("192.0.2.1")
		require.JSONEq(t, `{"next":"otp"}`, c.login(owner, password).Body.String())
		for _, code := range []string{w.code(f.key, 0), w.wrong(f.key), f.recovery[0]} {
			rec := c.otp(code)
			require.Equal(t, http.StatusTooManyRequests, rec.Code)
			require.Equal(t, "3600", rec.Header().Get("Retry-After"))
			require.Equal(t, "application/problem+json", rec.Header().Get("Content-Type"))
			require.Contains(t, rec.Body.String(), `"error":"locked"`)
			require.Contains(t, rec.Body.String(), "nor does a password reset")
		}
		require.Contains(t, c.accepting(browser).postForm("/otp", "code", w.code(f.key, 0)).Body.String(), "nor does a password reset")
	}
	requireLocked()
	w.advance(24 * time.Hour)
	c := w.from("192.0.2.1")
	c.post("/password-reset", "email", owner)
	token := w.token(owner)
	require.Equal(t, http.StatusOK, c.get("/password-reset/confirm?token="+token).Code)
	requireLocked()
	password = "new words of mine"
	require.Equal(t, http.StatusNoContent, c.post("/password-reset/confirm", "token", token, "password", password).Code)
	requireLocked()
	w.advance(88 * 24 * time.Hour)
	requireLocked()

	require.NoError(t, w.svc.guard.Unlock(t.Context(), owner, actOTP))
	require.Equal(t, http.StatusOK, c.login(owner, password).Code)
	require.Equal(t, http.StatusOK, c.otp(w.code(f.key, 0)).Code)
}

// LK-06: a reset lifts what wrong passwords have cost, and asks for the code still.
func TestAResetBypassesNoSecondFactor(t *testing.T) {
	w, f := newWorld(t).withFactor()
	c := w.halfIn("198.51.100.9")
	for range 5 {
		require.Equal(t, http.StatusUnauthorized, c.otp(w.wrong(f.key)).Code)
	}
	w.guessAt(owner, 5)
	c.post("/password-reset", "email", owner)
	rec := c.post("/password-reset/confirm", "token", w.token(owner), "password", "new words of mine")
	require.Equal(t, http.StatusNoContent, rec.Code)
	require.Equal(t, http.StatusUnauthorized, c.get("/me").Code)
	require.JSONEq(t, `{"error":"not_logged_in"}`, c.otp(w.code(f.key, 0)).Body.String(), "what was begun with the old password is over")

	rec = c.login(owner, "new words of mine")
	require.JSONEq(t, `{"next":"otp"}`, rec.Body.String(), "the password's window is lifted, and a code is owed")
	require.Equal(t, http.StatusUnauthorized, c.get("/me").Code)
	require.Contains(t, c.otp(w.code(f.key, 0)).Body.String(), `"otp/account"`, "the code's is not")
	w.advance(15 * time.Minute)
	require.Equal(t, http.StatusOK, c.login(owner, "new words of mine").Code)
	require.Equal(t, http.StatusOK, c.otp(w.code(f.key, 0)).Code)
}

func TestLoginWithASecondFactorInABrowser(t *testing.T) {
	w, f := newWorld(t).withFactor()
	c := w.from("198.51.100.9").accepting(browser)
	require.Equal(t, "/login", c.get("/otp").Header().Get("Location"), "no code is owed")
	rec := c.postForm("/otp", "code", w.code(f.key, 0))
	require.Equal(t, http.StatusUnauthorized, rec.Code)
	require.Contains(t, rec.Body.String(), "Please log in first.")

	rec = c.postForm("/login", "email", owner, "password", ownerPassword)
	require.Equal(t, http.StatusSeeOther, rec.Code)
	require.Equal(t, "/otp", rec.Header().Get("Location"))
	rec = c.get("/otp")
	require.Equal(t, http.StatusOK, rec.Code)
	require.Contains(t, rec.Body.String(), `<form method="post" action="/otp">`)
	rec = c.postForm("/otp", "code", w.wrong(f.key))
	require.Equal(t, http.StatusUnauthorized, rec.Code)
	require.Contains(t, rec.Body.String(), `role="alert">The code is wrong, too old or used.`)
	require.Regexp(t, `<input id="code"[^>]* aria-invalid="true" aria-describedby="alert code-help"`, rec.Body.String())
	rec = c.postForm("/otp", "code", w.code(f.key, 0))
	require.Equal(t, http.StatusSeeOther, rec.Code)
	require.Equal(t, "/account", rec.Header().Get("Location"))
	require.Contains(t, c.get("/account").Body.String(), owner)
}
