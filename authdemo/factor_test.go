package authdemo

import (
	"bytes"
	"encoding/base64"
	"image/png"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/authdemo/accounts"
)

func TestASecondFactorCountsOnceACodeHasConfirmedIt(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.loggedIn("192.0.2.1")
	rec := c.post("/account/otp", "current", "guess")
	require.Equal(t, http.StatusUnauthorized, rec.Code)
	require.JSONEq(t, `{"error":"invalid_credentials"}`, rec.Body.String())
	require.Equal(t, http.StatusConflict, c.post("/account/otp/confirm", "code", "000000").Code, "none was begun")

	first := c.begin()
	w.loggedIn("198.51.100.9") // the password alone logs in
	key := c.begin()
	rec = c.post("/account/otp/confirm", "code", w.code(first, 0))
	require.Equal(t, http.StatusUnauthorized, rec.Code, "the second takes the place of the first")
	require.JSONEq(t, `{"error":"invalid_code"}`, rec.Body.String())
	w.loggedIn("198.51.100.9")
	c.confirm(w.code(key, 0))
	require.Equal(t, http.StatusOK, c.get("/me").Code, "this session goes on")
	half := w.halfIn("198.51.100.9")
	require.Equal(t, http.StatusUnauthorized, half.otp(w.code(key, 0)).Code, "the code that has confirmed it is used")

	require.Equal(t, http.StatusConflict, c.post("/account/otp/confirm", "code", w.code(key, 1)).Code)
	rec = c.post("/account/otp", "current", ownerPassword)
	require.Equal(t, http.StatusConflict, rec.Code)
	require.Contains(t, rec.Body.String(), `"second_factor_on"`)
	require.Equal(t, http.StatusOK, half.otp(w.code(key, 1)).Code, "it is the same as before")
}

func TestWhatWasBegunEndsAfterTenMinutes(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.loggedIn("192.0.2.1")
	key := c.begin()
	w.advance(accounts.FactorLifetime)
	require.Equal(t, http.StatusConflict, c.post("/account/otp/confirm", "code", w.code(key, 0)).Code)
	w.loggedIn("192.0.2.1")
	key = c.begin()
	w.advance(accounts.FactorLifetime - time.Second)
	c.confirm(w.code(key, 0))
}

func TestASecondFactorIsConfirmedOnce(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.loggedIn("192.0.2.1")
	code := w.code(c.begin(), 0)
	var confirmed atomic.Int64
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			r := c.request(http.MethodPost, "/account/otp/confirm", "application/json", body([]string{"code", code}))
			rec := &statusOnly{header: http.Header{}}
			w.svc.ServeHTTP(rec, r)
			if rec.status == http.StatusOK {
				confirmed.Add(1)
			} else {
				assert.Equal(t, http.StatusConflict, rec.status)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, confirmed.Load(), "else the codes that one was shown would be another's")
}

// Whoever has only the session, the password or the code cannot turn it off.
func TestTurningItOffTakesBothSecrets(t *testing.T) {
	w, f := newWorld(t).withFactor()
	require.Equal(t, http.StatusUnauthorized, w.halfIn("192.0.2.1").post("/account/otp/remove", "current", ownerPassword, "code", w.code(f.key, 0)).Code)
	c := w.halfIn("192.0.2.1")
	require.Equal(t, http.StatusOK, c.otp(w.code(f.key, 0)).Code)
	remove := func(password, code string) (int, string) {
		rec := c.post("/account/otp/remove", "current", password, "code", code)
		return rec.Code, rec.Body.String()
	}
	compared := w.svc.codes.Compared()
	code, answer := remove("guess", w.code(f.key, 1))
	require.Equal(t, http.StatusUnauthorized, code)
	require.JSONEq(t, `{"error":"invalid_credentials"}`, answer)
	require.Equal(t, compared, w.svc.codes.Compared(), "without the password no code is looked at")
	code, answer = remove(ownerPassword, w.code(f.key, 0))
	require.Equal(t, http.StatusUnauthorized, code, "the code that has logged in is used")
	require.JSONEq(t, `{"error":"invalid_code"}`, answer)
	require.EqualValues(t, 1, w.wrongCodes(owner), "the same count as the login's")

	code, _ = remove(ownerPassword, f.recovery[9])
	require.Equal(t, http.StatusNoContent, code)
	w.loggedIn("198.51.100.9")
	code, answer = remove(ownerPassword, w.code(f.key, 1))
	require.Equal(t, http.StatusConflict, code)
	require.Contains(t, answer, `"second_factor_off"`)

	f = w.turnOn(owner)
	require.Equal(t, http.StatusOK, w.halfIn("192.0.2.1").otp(f.recovery[9]).Code, "with a new key and new codes")
}

// A code that is guessed at the account page is guessed at the login, too.
func TestTheAccountPageBringsNoFurtherGuesses(t *testing.T) {
	w, f := newWorld(t).withFactor()
	c := w.halfIn("192.0.2.1")
	require.Equal(t, http.StatusOK, c.otp(w.code(f.key, 0)).Code)
	for i := range 5 {
		if i < 3 {
			require.Equal(t, http.StatusUnauthorized, c.post("/account/otp/remove", "current", ownerPassword, "code", w.wrong(f.key)).Code)
		} else {
			require.Equal(t, http.StatusUnauthorized, w.halfIn("192.0.2.1").otp(w.wrong(f.key)).Code)
		}
	}
	require.Contains(t, c.post("/account/otp/remove", "current", ownerPassword, "code", w.code(f.key, 1)).Body.String(), `"otp/account"`)
	require.Contains(t, w.halfIn("192.0.2.1").otp(w.code(f.key, 1)).Body.String(), `"otp/account"`)
}

func TestTheAccountPageShowsTheSecondFactor(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.loggedIn("192.0.2.1").accepting(browser)
	require.Contains(t, c.get("/account").Body.String(), "Off: the password alone logs in.")
	page := c.postForm("/account/otp", "current", "guess").Body.String()
	require.Regexp(t, `<input id="otp_current"[^>]* aria-invalid="true" aria-describedby="alert">`, page)

	rec := c.postForm("/account/otp", "current", ownerPassword)
	require.Equal(t, http.StatusCreated, rec.Code)
	page = rec.Body.String()
	image := regexp.MustCompile(`<img class="qr" src="data:image/png;base64,([^"]+)"[^>]* alt="[^"]+">`).FindStringSubmatch(page)
	require.NotNil(t, image, page)
	require.Contains(t, rec.Header().Get("Content-Security-Policy"), "img-src data:")
	raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(image[1], "&#43;", "+"))
	require.NoError(t, err)
	drawn, err := png.Decode(bytes.NewReader(raw))
	require.NoError(t, err)
	require.Equal(t, 256, drawn.Bounds().Dx())
	key := strings.ReplaceAll(regexp.MustCompile(`<code class="key">([A-Z2-7 ]+)</code>`).FindStringSubmatch(page)[1], " ", "")

	page = c.get("/account").Body.String()
	require.NotContains(t, page, "data:image", "it is shown once")
	require.Contains(t, page, `action="/account/otp/confirm"`, "and may be confirmed still")
	page = c.postForm("/account/otp/confirm", "code", w.wrong(key)).Body.String()
	require.Regexp(t, `<input id="otp_confirm"[^>]* aria-invalid="true" aria-describedby="alert">`, page)
	rec = c.postForm("/account/otp/confirm", "code", w.code(key, 0))
	require.Equal(t, http.StatusOK, rec.Code)
	codes := regexp.MustCompile(`<li><code>([a-z2-7]{4}(?:-[a-z2-7]{4}){3})</code>`).FindAllStringSubmatch(rec.Body.String(), -1)
	require.Len(t, codes, 10)
	require.Contains(t, rec.Body.String(), `role="status">The second factor is on.`)

	since := w.clock().UTC().Format("2 January 2006")
	page = c.get("/account").Body.String()
	require.Contains(t, page, "On since "+since+". Recovery codes left: 10.")
	require.NotContains(t, page, codes[0][1])
	require.Equal(t, http.StatusSeeOther, w.halfIn("192.0.2.1").accepting(browser).postForm("/otp", "code", codes[0][1]).Code)
	require.Contains(t, c.get("/account").Body.String(), "Recovery codes left: 9.")
	page = c.postForm("/account/otp/remove", "current", ownerPassword, "code", "x").Body.String()
	require.Regexp(t, `<input id="otp_code"[^>]* aria-invalid="true" aria-describedby="alert">`, page)
	require.Len(t, regexp.MustCompile(`aria-invalid`).FindAllString(page, -1), 1)
	require.Equal(t, "/account?notice=second_factor_off", c.postForm("/account/otp/remove", "current", ownerPassword, "code", codes[1][1]).Header().Get("Location"))
	require.Contains(t, c.get("/account?notice=second_factor_off").Body.String(), "The second factor is off.")
}

// The database alone gives no second factor away, nor does the log.
func TestNoKeyOrCodeIsKeptOrLoggedAsItIs(t *testing.T) {
	w, f := newWorld(t).withFactor()
	code := w.code(f.key, 0)
	require.Equal(t, http.StatusOK, w.halfIn("192.0.2.1").otp(code).Code)
	require.Equal(t, http.StatusOK, w.halfIn("192.0.2.1").otp(f.recovery[0]).Code)
	kept := w.log.String()
	require.NotRegexp(t, `\b`+code+`\b`, kept)
	for _, suffix := range []string{"", "-wal"} {
		raw, err := os.ReadFile(w.svc.cfg.DB + suffix)
		require.NoError(t, err)
		kept += string(raw)
	}
	require.Contains(t, kept, owner, "this is where it is kept")
	for _, secret := range append(f.recovery, f.key) {
		require.NotContains(t, kept, secret)
		require.NotContains(t, kept, strings.ReplaceAll(secret, "-", ""))
	}
}

// With another secret no key of an app can be opened: that is a fault, and no way
// in. Recovery codes do not need it.
func TestAfterAChangeOfTheSecretRecoveryCodesAreLeft(t *testing.T) {
	w, f := newWorld(t).withFactor()
	later := newWorld(t, func(c *Config) { c.DB, c.Secret = w.svc.cfg.DB, bytes.Repeat([]byte("t"), 32) })
	c := later.halfIn("192.0.2.1")
	for range 7 {
		require.Equal(t, http.StatusInternalServerError, c.otp(later.code(f.key, 0)).Code)
	}
	require.Contains(t, later.log.String(), "the service's secret was changed")
	require.Equal(t, http.StatusOK, c.otp(f.recovery[0]).Code)
}

func TestARestoredAccountHasNoSecondFactor(t *testing.T) {
	w, _ := newWorld(t).withFactor()
	w.restore(owner)
	w.loggedIn("192.0.2.1")
}
