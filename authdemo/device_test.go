package authdemo

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// deviceCookie is what the service at https://login.example.com sets.
const deviceCookie = "__Host-authdemo_device"

// known reports that c is a device of owner's account, which strangers have locked.
func (c *client) known() bool {
	c.w.Helper()
	rec := c.login(owner, ownerPassword)
	if rec.Code == http.StatusTooManyRequests {
		return false
	}
	require.Equal(c.w, http.StatusOK, rec.Code)
	return true
}

// LK-01: the demo's owner gets in from a browser that has logged in before.
func TestAKnownBrowserGetsIn(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.loggedIn("192.0.2.1")
	w.guessAt(owner, failuresToLock)
	requireLocked(t, w.from("192.0.2.1").login(owner, ownerPassword))
	require.True(t, c.known())
	requireLocked(t, w.from("192.0.2.1").login(owner, ownerPassword))
	require.Equal(t, http.StatusNoContent, c.post("/logout").Code)
	require.True(t, c.known(), "who logs out stays known")
}

func TestTheDeviceCookie(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.from("192.0.2.1")
	require.Equal(t, http.StatusUnauthorized, c.login(owner, "guess").Code)
	require.NotContains(t, c.cookies, deviceCookie)
	require.Equal(t, http.StatusOK, c.login(owner, ownerPassword).Code)
	cookie := c.cookies[deviceCookie]
	require.Equal(t, "/", cookie.Path)
	require.Empty(t, cookie.Domain)
	require.True(t, cookie.HttpOnly)
	require.True(t, cookie.Secure)
	require.Equal(t, http.SameSiteLaxMode, cookie.SameSite)
	require.Equal(t, 180*24*60*60, cookie.MaxAge)
	require.NotContains(t, cookie.Value, "owner")

	plain := newWorld(t, development)
	c = plain.from("127.0.0.1")
	require.Equal(t, http.StatusOK, c.login(DemoEmail, DemoPassword).Code)
	require.False(t, c.cookies["authdemo_device"].Secure)
}

// A new password makes strangers of all devices but the one that set it; so does a
// reset (LK-06).
func TestANewPasswordRevokesDevices(t *testing.T) {
	const changed = "new words of mine"
	for name, set := range map[string]func(w *world, c *client) int{
		"change": func(_ *world, c *client) int {
			return c.post("/account/password", "current", ownerPassword, "new", changed).Code
		},
		"reset": func(w *world, c *client) int {
			c.post("/password-reset", "email", owner)
			return c.post("/password-reset/confirm", "token", w.token(owner), "password", changed).Code
		},
	} {
		w := newWorld(t).withOwner()
		c, other := w.loggedIn("192.0.2.1"), w.loggedIn("192.0.2.2")
		stolen := c.cookies[deviceCookie].Value
		require.Equal(t, http.StatusNoContent, set(w, c), name)
		w.guessAt(owner, failuresToLock)
		require.Equal(t, http.StatusOK, c.login(owner, changed).Code, name)
		requireLocked(t, other.login(owner, changed))
		require.NotEqual(t, stolen, c.cookies[deviceCookie].Value)
		thief := w.from("203.0.113.1")
		thief.cookies[deviceCookie] = &http.Cookie{Name: deviceCookie, Value: stolen}
		requireLocked(t, thief.login(owner, changed))
	}
}

var forgetButton = regexp.MustCompile(`action="/account/devices/revoke" class="inline"><button name="device" value="([^"]+)">`)

func TestDevicesAreListedAndRevoked(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.loggedIn("192.0.2.1")
	w.advance(10 * time.Hour)
	c.login(owner, ownerPassword) // renewed, not listed twice
	w.advance(10 * time.Hour)
	other := w.loggedIn("192.0.2.2")
	listed := func() (ids []string) {
		page := c.accepting(browser).get("/account").Body.String()
		c.accepting("application/json")
		for _, m := range forgetButton.FindAllStringSubmatch(page, -1) {
			ids = append(ids, m[1])
		}
		return ids
	}
	ids := listed()
	require.Len(t, ids, 3, "two devices, the one used last first, and all")
	require.Equal(t, "all", ids[2])
	require.NotContains(t, c.cookies[deviceCookie].Value, ids[0])
	page := c.accepting(browser).get("/account").Body.String()
	require.Contains(t, page, w.clock().Add(-20*time.Hour).UTC().Format("2 January 2006, 15:04"))
	require.Contains(t, c.postForm("/account/password", "current", "guess", "new", "new words of mine").Body.String(), ids[0], "on the page of a refusal, too")
	c.accepting("application/json")

	revoke := func(c *client, id string) int { return c.post("/account/devices/revoke", "device", id).Code }
	require.Equal(t, http.StatusUnauthorized, revoke(w.from("192.0.2.1"), ids[0]))
	require.Equal(t, http.StatusBadRequest, c.post("/account/devices/revoke").Code)
	require.Equal(t, http.StatusNoContent, revoke(c, "nothing"))
	stranger := w.somebodyElse("eve@example.com")
	require.Equal(t, http.StatusNoContent, revoke(stranger, ids[0]))
	require.Len(t, listed(), 3, "nobody revokes another's")

	rec := c.accepting(browser).postForm("/account/devices/revoke", "device", ids[0])
	require.Equal(t, "/account?notice=devices", rec.Header().Get("Location"))
	c.accepting("application/json")
	require.Equal(t, []string{ids[1], "all"}, listed())
	require.Equal(t, http.StatusOK, other.get("/me").Code, "its session goes on")
	w.guessAt(owner, failuresToLock)
	requireLocked(t, other.login(owner, ownerPassword))
	require.True(t, c.known())

	require.Equal(t, http.StatusNoContent, revoke(c, "all"))
	require.Empty(t, listed())
	requireLocked(t, c.login(owner, ownerPassword))
	require.Equal(t, http.StatusOK, c.get("/me").Code)
}

// somebodyElse is logged in to an account of their own.
func (w *world) somebodyElse(email string) *client {
	require.NoError(w, w.svc.accounts.Restore(w.Context(), email, w.svc.hasher.Hash("another's own words")))
	c := w.from("192.0.2.7")
	require.Equal(w, http.StatusOK, c.login(email, "another's own words").Code)
	return c
}

// Another site's page can revoke nothing.
func TestRevokingIsForOurPagesOnly(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.loggedIn("192.0.2.1")
	c.header.Set("Sec-Fetch-Site", "cross-site")
	require.Equal(t, http.StatusForbidden, c.send(http.MethodPost, "/account/devices/revoke", "application/x-www-form-urlencoded", url.Values{"device": {"all"}}.Encode()).Code)
	c.header.Del("Sec-Fetch-Site")
	w.guessAt(owner, failuresToLock)
	require.True(t, c.known())
}

// A shared computer knows all who use it, and nobody may try another's password by
// the limits of the owner's device.
func TestASharedBrowserKnowsAllItsAccounts(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.somebodyElse("eve@example.com")
	require.Equal(t, http.StatusOK, c.login(owner, ownerPassword).Code)
	w.guessAt(owner, failuresToLock)
	w.guessAt("eve@example.com", failuresToLock)
	require.True(t, c.known())
	require.Equal(t, http.StatusOK, c.login("eve@example.com", "another's own words").Code)
	mallory := w.somebodyElse("mallory@example.com")
	requireLocked(t, mallory.login(owner, ownerPassword))
}

// Somebody with a stolen cookie locks all devices; who forgets them all has known
// devices again from the next login on, and the thief none.
func TestForgettingAllDevicesEndsTheirLock(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.loggedIn("192.0.2.1")
	thief := w.from("203.0.113.1")
	thief.cookies[deviceCookie] = c.cookies[deviceCookie]
	for failures := 0; failures < 20; {
		if rec := thief.login(owner, "guess"); rec.Code == http.StatusUnauthorized {
			failures++
			continue
		}
		w.advance(15 * time.Minute)
	}
	rec := c.login(owner, ownerPassword)
	require.Equal(t, http.StatusTooManyRequests, rec.Code)
	require.Contains(t, rec.Body.String(), `"error":"locked"`)
	require.Contains(t, rec.Body.String(), `"login/devices"`)
	require.Equal(t, http.StatusNoContent, c.post("/account/devices/revoke", "device", "all").Code)
	w.guessAt(owner, 5)
	require.Equal(t, http.StatusTooManyRequests, thief.login(owner, "guess").Code, "a stranger again")
	require.Equal(t, http.StatusTooManyRequests, c.login(owner, ownerPassword).Code, "like everybody")
	w.advance(15 * time.Minute)
	require.Equal(t, http.StatusOK, c.login(owner, ownerPassword).Code)
	w.guessAt(owner, 5)
	require.True(t, c.known())
}

// The list says which of the devices is the browser that shows it, and never of another
// that it is.
func TestTheListMarksThisBrowser(t *testing.T) {
	w := newWorld(t).withOwner()
	first := w.loggedIn("192.0.2.1")
	w.advance(time.Hour)
	second := w.loggedIn("192.0.2.2")
	rows := func(c *client) (marked []bool) {
		for _, row := range strings.SplitAfter(c.get("/account").Body.String(), "</tr>") {
			if forgetButton.FindStringSubmatch(row) != nil && strings.Contains(row, "<tr>") {
				marked = append(marked, strings.Contains(row, "this browser"))
			}
		}
		return marked
	}
	require.Equal(t, []bool{false, true}, rows(first), "the one used last is first")
	require.Equal(t, []bool{true, false}, rows(second))
	delete(first.cookies, deviceCookie)
	require.Equal(t, []bool{false, false}, rows(first))
}
