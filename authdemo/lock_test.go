package authdemo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func decode(t testing.TB, rec *httptest.ResponseRecorder, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), v), rec.Body.String())
}

// guessAt tries passwords, each from another address, and waits as it is told,
// until n have been compared.
func (w *world) guessAt(email string, n int) {
	w.Helper()
	for i, failures := 0, 0; failures < n; i++ {
		rec := w.from(fmt.Sprintf("203.0.%d.%d", i/250, i%250+1)).login(email, "guess")
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

func requireLocked(t testing.TB, rec *httptest.ResponseRecorder) {
	t.Helper()
	require.Equal(t, http.StatusTooManyRequests, rec.Code)
	require.Equal(t, "3600", rec.Header().Get("Retry-After"))
	require.Contains(t, rec.Body.String(), `"error":"locked"`)
	require.Contains(t, rec.Body.String(), `"login/streak"`)
}

const failuresToLock = 80

func TestAnUnknownAccountIsLockedLikeAKnownOne(t *testing.T) {
	answers := map[string][]*httptest.ResponseRecorder{}
	for _, email := range []string{owner, "nobody@example.com"} {
		w := newWorld(t).withOwner()
		before := w.svc.Hasher().Computed()
		w.guessAt(email, failuresToLock)
		require.EqualValues(t, failuresToLock, w.svc.Hasher().Computed()-before)
		for range 3 {
			rec := w.from("192.0.2.1").login(email, ownerPassword)
			requireLocked(t, rec)
			answers[email] = append(answers[email], rec)
			w.advance(24 * time.Hour)
		}
		require.EqualValues(t, failuresToLock, w.svc.Hasher().Computed()-before)
		rec := w.from("192.0.2.1").accepting(browser).postForm("/login", "email", email, "password", ownerPassword)
		require.Contains(t, rec.Body.String(), "A password reset opens the account.")
	}
	for i, a := range answers[owner] {
		same(t, a, answers["nobody@example.com"][i])
	}
}

func TestAnOpenedLinkMakesItsBrowserKnown(t *testing.T) {
	w := newWorld(t).withOwner()
	w.guessAt(owner, failuresToLock)
	c := w.from("192.0.2.1")
	c.post("/password-reset", "email", owner)
	token := w.token(owner)
	for _, path := range []string{"", "?token=", "?token=rubbish", "?token=" + token[1:], "?tokens=" + token} {
		require.Equal(t, http.StatusOK, c.get("/password-reset/confirm"+path).Code)
		requireLocked(t, c.login(owner, ownerPassword))
	}
	require.Equal(t, http.StatusOK, c.get("/password-reset/confirm?token="+token).Code)
	require.Equal(t, http.StatusUnauthorized, c.get("/me").Code, "known is not logged in")
	require.Equal(t, http.StatusOK, c.login(owner, ownerPassword).Code)
	requireLocked(t, w.from("192.0.2.1").login(owner, ownerPassword))
	require.Equal(t, http.StatusNoContent,
		c.post("/password-reset/confirm", "token", token, "password", "new words of mine").Code, "the token is still good")
}

// A scanner opens each link that a guesser has mailed: that lifts nothing.
func TestOpenedLinksGiveNoGuess(t *testing.T) {
	w := newWorld(t).withOwner()
	scanner, compared, opens := w.from("192.0.2.9"), 0, 0
	for i := 0; ; i++ {
		rec := w.from(fmt.Sprintf("203.0.%d.%d", i/250, i%250+1)).login(owner, "guess")
		if rec.Code == http.StatusUnauthorized {
			compared++
			continue
		}
		w.from(fmt.Sprintf("198.51.100.%d", i%250)).post("/password-reset", "email", owner)
		scanner.get("/password-reset/confirm?token=" + w.token(owner))
		opens++
		rec = w.from("203.0.113.1").login(owner, "guess")
		if strings.Contains(rec.Body.String(), `"locked"`) {
			break
		}
		require.Equal(t, http.StatusTooManyRequests, rec.Code, "as before")
		wait, err := strconv.Atoi(rec.Header().Get("Retry-After"))
		require.NoError(t, err)
		w.advance(time.Duration(wait) * time.Second)
	}
	require.Equal(t, failuresToLock, compared)
	require.GreaterOrEqual(t, opens, 6)
}

func TestOpeningLinksIsChargedToTheAddress(t *testing.T) {
	w := newWorld(t).withOwner()
	w.guessAt(owner, failuresToLock)
	w.from("192.0.2.1").post("/password-reset", "email", owner)
	token := w.token(owner)
	guesser := w.from("198.51.100.9")
	for i := range 20 {
		require.Contains(t, guesser.get(fmt.Sprint("/password-reset/confirm?token=", i)).Body.String(), "<form")
	}
	rec := guesser.get("/password-reset/confirm?token=" + token)
	require.Equal(t, http.StatusOK, rec.Code, "the page, and nothing but the page")
	require.Contains(t, rec.Body.String(), token)
	requireLocked(t, guesser.login(owner, ownerPassword))
	require.Equal(t, http.StatusTooManyRequests,
		guesser.post("/password-reset/confirm", "token", token, "password", "new words of mine").Code, "the same count")

	c := w.from("192.0.2.1")
	require.Equal(t, http.StatusOK, c.get("/password-reset/confirm?token="+token).Code)
	require.Equal(t, http.StatusOK, c.login(owner, ownerPassword).Code)
	require.NotContains(t, w.log.String(), "level=ERROR")
}

func TestALinkThatExpiredEarnsNothing(t *testing.T) {
	w := newWorld(t).withOwner()
	w.guessAt(owner, failuresToLock)
	w.from("192.0.2.1").post("/password-reset", "email", owner)
	token := w.token(owner)
	w.advance(24 * time.Hour)
	c := w.from("192.0.2.1")
	require.Equal(t, http.StatusOK, c.get("/password-reset/confirm?token="+token).Code)
	requireLocked(t, c.login(owner, ownerPassword))
}

func TestWithoutAStoreALinkShowsItsPage(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Store = downStore{c.Store} })
	rec := w.from("192.0.2.1").get("/password-reset/confirm?token=abc")
	require.Equal(t, http.StatusOK, rec.Code)
	require.Contains(t, rec.Body.String(), "abc")
}

func TestACompletedResetLiftsTheLock(t *testing.T) {
	w := newWorld(t).withOwner()
	w.guessAt(owner, failuresToLock)
	w.from("192.0.2.1").post("/password-reset", "email", owner)
	require.Equal(t, http.StatusNoContent,
		w.from("192.0.2.1").post("/password-reset/confirm", "token", w.token(owner), "password", "new words of mine").Code)
	require.Equal(t, http.StatusOK, w.from("192.0.2.1").login(owner, "new words of mine").Code)
	for range 5 {
		require.Equal(t, http.StatusUnauthorized, w.from("192.0.2.1").login(owner, "guess").Code, "the windows are lifted, too")
	}
}

func TestASuccessEndsTheStreak(t *testing.T) {
	w := newWorld(t).withOwner()
	for range 2 { // never more than the free ten in a row: no wait but the window's
		for range 2 {
			w.guessAt(owner, 5)
			w.advance(15 * time.Minute)
		}
		require.Equal(t, http.StatusOK, w.from("192.0.2.1").login(owner, ownerPassword).Code)
	}
	w.advance(24 * time.Hour)
	w.guessAt(owner, 5)
	w.advance(15 * time.Minute)
	w.guessAt(owner, 5)
	rec := w.from("192.0.2.1").login(owner, ownerPassword)
	require.Contains(t, rec.Body.String(), `"login/streak"`, "and the tenth in a row brings a wait, beside the window's")
}

// The password that a session is asked for is that of the login.
func TestLoginAndChangeOfPasswordShareOneStreak(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.loggedIn("192.0.2.1")
	delete(c.cookies, deviceCookie) // a session whose device was revoked
	change := func(current string) *httptest.ResponseRecorder {
		return c.post("/account/password", "current", current, "new", "new words of mine")
	}
	w.guessAt(owner, 5)
	for range 5 {
		require.Equal(t, http.StatusUnauthorized, change("guess").Code)
	}
	// Ten in a row: both wait, and either's window of five is for itself.
	require.Contains(t, change(ownerPassword).Body.String(), `"reauth/streak"`)
	require.Contains(t, w.from("192.0.2.1").login(owner, ownerPassword).Body.String(), `"login/streak"`)
	w.advance(15 * time.Minute)
	require.Equal(t, http.StatusUnauthorized, change("guess").Code)
	rec := w.from("192.0.2.1").login(owner, ownerPassword)
	require.Equal(t, "60", rec.Header().Get("Retry-After"), "the eleventh, made in the session")
	require.NotContains(t, rec.Body.String(), `"login/account"`)
	w.advance(time.Minute)
	require.Equal(t, http.StatusNoContent, change(ownerPassword).Code)
	require.Equal(t, http.StatusOK, w.from("192.0.2.1").login(owner, "new words of mine").Code)
	w.guessAt(owner, 5)
	require.NotContains(t, w.from("192.0.2.1").login(owner, "guess").Body.String(), "streak", "the success in the session has ended it")
}

// A completed reset uses all links up, so it must bring mails for new ones: else
// somebody who has spent the owner's mails could keep the owner outside.
func TestAfterAResetTheOwnerCanAskForMailsAgain(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.from("198.51.100.9")
	for i := range 6 {
		w.advance(20 * time.Minute)
		require.Equal(t, http.StatusAccepted, w.from(fmt.Sprintf("203.0.113.%d", i)).post("/password-reset", "email", owner).Code)
	}
	sent := len(w.links(owner))
	c.post("/password-reset", "email", owner)
	require.Len(t, w.links(owner), sent, "the day's mails are spent")
	require.Equal(t, http.StatusNoContent, c.post("/password-reset/confirm", "token", w.token(owner), "password", "new words of the owner").Code)
	c.post("/password-reset", "email", owner)
	require.Len(t, w.links(owner), sent+1)
}
