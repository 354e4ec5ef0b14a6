package authdemo

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRegister(t *testing.T) {
	w := newWorld(t)
	c := w.from("198.51.100.9")
	require.Equal(t, http.StatusCreated, c.post("/register", "email", "New@Example.com", "password", "a good password").Code)
	assert.Empty(t, c.cookies)
	assert.Equal(t, http.StatusUnauthorized, c.login("new@example.com", "a good password").Code, "not before it is confirmed")

	mail := w.mails("new@example.com")[0]
	assert.Contains(t, mail.Link, "https://login.example.com/register/confirm?token=")
	assert.Contains(t, mail.Text, mail.Link)
	token := w.token("new@example.com")
	assert.Contains(t, c.get("/register/confirm?token="+token).Body.String(), token)
	require.Equal(t, http.StatusNoContent, c.post("/register/confirm", "token", token, "password", "a good password").Code)
	assert.Equal(t, http.StatusOK, c.login("new@example.com", "a good password").Code)

	rec := c.post("/register/confirm", "token", token, "password", "another password")
	assert.Equal(t, http.StatusBadRequest, rec.Code)
	assert.JSONEq(t, `{"error":"invalid_token"}`, rec.Body.String())
}

func TestWhoeverRegistersAnothersAddressGetsNothingByIt(t *testing.T) {
	w := newWorld(t)
	w.from("198.51.100.9").post("/register", "email", "victim@example.com", "password", "the attacker's choice")
	victim := w.from("192.0.2.1")
	require.Equal(t, http.StatusNoContent,
		victim.post("/register/confirm", "token", w.token("victim@example.com"), "password", "the victim's choice").Code)
	assert.Equal(t, http.StatusUnauthorized, victim.login("victim@example.com", "the attacker's choice").Code)
	assert.Equal(t, http.StatusOK, victim.login("victim@example.com", "the victim's choice").Code)
}

func TestATakenAddressIsAnsweredAsAnyOther(t *testing.T) {
	w := newWorld(t).withOwner()
	before := w.svc.Hasher().Computed()
	taken := w.from("198.51.100.9").post("/register", "email", owner, "password", "a good password")
	free := w.from("198.51.100.9").post("/register", "email", "new@example.com", "password", "a good password")
	same(t, taken, free)
	assert.Equal(t, before, w.svc.Hasher().Computed())
	assert.Equal(t, "You have an account already", w.mails(owner)[0].Subject)
	assert.Equal(t, "Confirm your address", w.mails("new@example.com")[0].Subject)
}

func TestRegisterRefuses(t *testing.T) {
	w := newWorld(t)
	for i, tt := range []struct{ email, password, code string }{
		{"new@example.com", "short", "weak_password"},
		{"new@example.com", "password1", "weak_password"},
		{"new@example.com", "new@example.com", "weak_password"},
		{"", "a good password", "invalid_email"},
		{"new", "a good password", "invalid_email"},
		{"New <new@example.com>", "a good password", "invalid_email"},
		{"a@example.com, b@example.com", "a good password", "invalid_email"},
		{"a@example.com\r\nBcc: b@example.com", "a good password", "invalid_email"},
	} {
		rec := w.from(fmt.Sprintf("198.51.100.%d", i)).post("/register", "email", tt.email, "password", tt.password)
		assert.Equal(t, http.StatusBadRequest, rec.Code, tt.email)
		assert.Contains(t, rec.Body.String(), `"error":"`+tt.code+`","detail":`)
	}
	w.svc.mails.flush(t.Context())
	assert.Empty(t, w.box.Mails())
}

func TestReset(t *testing.T) {
	w := newWorld(t).withOwner()
	browserOfOwner := w.from("192.0.2.1")
	browserOfOwner.login(owner, ownerPassword)
	for i := range 6 { // LK-06: somebody keeps the owner out
		w.from(fmt.Sprintf("198.51.100.%d", i)).login(owner, "guess")
	}
	require.Equal(t, http.StatusTooManyRequests, w.from("192.0.2.1").login(owner, ownerPassword).Code)

	c := w.from("192.0.2.1")
	require.Equal(t, http.StatusAccepted, c.post("/password-reset", "email", "OWNER@example.com").Code)
	first := w.token(owner)
	require.Equal(t, http.StatusAccepted, c.post("/password-reset", "email", owner).Code)
	second := w.token(owner)
	require.NotEqual(t, first, second)

	for range 3 { // a mail scanner opens the link
		assert.Equal(t, http.StatusOK, w.from("203.0.113.1").get("/password-reset/confirm?token="+first).Code)
	}
	rec := c.post("/password-reset/confirm", "token", first, "password", "12345678")
	assert.Equal(t, http.StatusBadRequest, rec.Code)
	assert.Contains(t, rec.Body.String(), "weak_password")
	require.Equal(t, http.StatusNoContent, c.post("/password-reset/confirm", "token", first, "password", "new words of mine").Code)

	assert.Equal(t, http.StatusUnauthorized, browserOfOwner.get("/me").Code, "all sessions have ended")
	assert.Equal(t, http.StatusUnauthorized, c.login(owner, ownerPassword).Code)
	assert.Equal(t, http.StatusOK, c.login(owner, "new words of mine").Code, "the limit was lifted")
	for _, token := range []string{first, second, "", "rubbish"} {
		before := w.svc.Hasher().Computed()
		rec := c.post("/password-reset/confirm", "token", token, "password", "newer words of mine")
		assert.Equal(t, http.StatusBadRequest, rec.Code)
		assert.JSONEq(t, `{"error":"invalid_token"}`, rec.Body.String())
		assert.Equal(t, before, w.svc.Hasher().Computed(), "a wrong token costs no hash")
	}
}

func TestAResetDoesNotLiftTheLimitOfAnAddress(t *testing.T) {
	w := newWorld(t).withOwner()
	attacker := w.from("198.51.100.9")
	for i := range 100 {
		attacker.login(fmt.Sprintf("victim%d@example.com", i), "guess")
	}
	require.Equal(t, http.StatusTooManyRequests, attacker.login(owner, ownerPassword).Code)
	w.from("192.0.2.1").post("/password-reset", "email", owner)
	require.Equal(t, http.StatusNoContent,
		attacker.post("/password-reset/confirm", "token", w.token(owner), "password", "new words of mine").Code)
	assert.Equal(t, http.StatusTooManyRequests, w.from("198.51.100.9").login(owner, "new words of mine").Code)
	assert.Equal(t, http.StatusOK, attacker.login(owner, "new words of mine").Code, "but a browser that has read the mailbox is known")
}

// PR-10
func TestMailsToOneAddressAreLimitedInSilence(t *testing.T) {
	w := newWorld(t).withOwner()
	reference := w.from("192.0.2.1").post("/password-reset", "email", "nobody@example.com")
	for i := range 6 {
		same(t, reference, w.from(fmt.Sprintf("198.51.100.%d", i)).post("/password-reset", "email", owner))
	}
	assert.Len(t, w.mails(owner), 3)
	assert.Empty(t, w.mails("nobody@example.com"))

	w.advance(time.Hour)
	w.from("192.0.2.2").post("/password-reset", "email", owner)
	assert.Len(t, w.mails(owner), 4)
}

func TestResetInABrowser(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.from("198.51.100.9").accepting(browser)
	assert.Equal(t, "/password-reset?notice=reset", c.postForm("/password-reset", "email", owner).Header().Get("Location"))
	token := w.token(owner)
	rec := c.postForm("/password-reset/confirm", "token", token, "password", "short")
	assert.Equal(t, http.StatusBadRequest, rec.Code)
	assert.Contains(t, rec.Body.String(), token, "the form can be sent again")
	assert.Equal(t, "no-referrer", rec.Header().Get("Referrer-Policy"))
	rec = c.postForm("/password-reset/confirm", "token", token, "password", "new words of mine")
	assert.Equal(t, "/login?notice=password", rec.Header().Get("Location"))
	rec = c.postForm("/register", "email", "new@example.com", "password", "a good password")
	assert.Equal(t, "/register?notice=signup", rec.Header().Get("Location"))
	rec = c.postForm("/register/confirm", "token", w.token("new@example.com"), "password", "a good password")
	assert.Equal(t, "/login?notice=confirmed", rec.Header().Get("Location"))
}
