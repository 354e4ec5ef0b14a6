package authdemo

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each start makes the demo account anew, so that what is printed works.
func TestEveryStartRestoresTheDemoAccount(t *testing.T) {
	w := newWorld(t, development)
	c := w.from("127.0.0.1")
	require.Equal(t, http.StatusOK, c.login(DemoEmail, DemoPassword).Code)
	key := ""
	for range 5 {
		key = c.newKey()
	}
	require.Equal(t, http.StatusNoContent, c.post("/account/password", "current", DemoPassword, "new", "new words of mine").Code)

	second := newWorld(t, development, func(cfg *Config) { cfg.DB = w.svc.cfg.DB })
	again := second.from("127.0.0.1")
	require.Equal(t, http.StatusUnauthorized, c.get("/me").Code, "the session has ended, in the first service, too")
	require.Equal(t, http.StatusOK, again.login(DemoEmail, DemoPassword).Code)
	again.newKey()
	old := w.from("127.0.0.1")
	old.header.Set("X-API-Key", key)
	require.Equal(t, http.StatusUnauthorized, old.get("/api/quote").Code)
	require.Equal(t, http.StatusOK, w.from("127.0.0.1").login(DemoEmail, DemoPassword).Code, "two services on one database")
}

func TestTheFrameKnowsWhoIsLoggedIn(t *testing.T) {
	w := newWorld(t, development).withOwner()
	links := func(c *client, path string) string {
		nav := regexp.MustCompile(`(?s)<nav.*</nav>`).FindString(c.get(path).Body.String())
		return strings.Join(regexp.MustCompile(`(?:aria-current="page")?>([A-Z][a-z ]+)<`).FindAllString(nav, -1), " ")
	}
	stranger := w.from("127.0.0.1").accepting(browser)
	require.Equal(t, `aria-current="page">Log in< >Register< >Outbox<`, links(stranger, "/login"))
	require.Equal(t, `>Log in< >Register< >Outbox<`, links(stranger, "/"))
	require.Equal(t, `>Log in< >Register< aria-current="page">Outbox<`, links(stranger, "/dev/outbox"))

	c := w.loggedIn("127.0.0.1").accepting(browser)
	require.Equal(t, `>Account< >Outbox< >Log out<`, links(c, "/"))
	require.Equal(t, `aria-current="page">Account< >Outbox< >Log out<`, links(c, "/account"))
	require.Equal(t, `>Account< >Outbox< >Log out<`, links(c, "/nothing"))
	require.NotContains(t, c.get("/login").Body.String(), owner, "what is typed is not who is logged in")

	c.header.Set("Accept", browser)
	require.Equal(t, "/login?notice=logout", c.postForm("/logout").Header().Get("Location"))
	require.Equal(t, `>Log in< >Register< >Outbox<`, links(c, "/"))
}

func TestARefusedFormSaysWhichFieldItIs(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.loggedIn("198.51.100.9").accepting(browser)
	w.from("192.0.2.1").post("/password-reset", "email", owner)
	token := w.token(owner)
	for _, tt := range []struct {
		path, field string
		fields      []string
	}{
		{"/register", "email", []string{"email", "new", "password", "a good password"}},
		{"/register", "password", []string{"email", "new@example.com", "password", "short"}},
		{"/account/password", "current", []string{"current", "guess", "new", "a good password"}},
		{"/account/password", "new", []string{"current", ownerPassword, "new", "short"}},
		{"/password-reset/confirm", "password", []string{"token", token, "password", "short"}},
	} {
		page := c.postForm(tt.path, tt.fields...).Body.String()
		require.Contains(t, page, "<title>Error: ", tt.path)
		require.Contains(t, page, `<p id="alert" class="message alert" role="alert">`, tt.path)
		invalid := regexp.MustCompile(`<input id="(\w+)"[^>]* aria-invalid="true" aria-describedby="alert`).FindAllStringSubmatch(page, -1)
		require.Len(t, invalid, 1, tt.path)
		require.Equal(t, tt.field, invalid[0][1], tt.path)
	}
	require.NotContains(t, c.get("/register").Body.String(), "Error: ")
	require.NotContains(t, c.get("/register").Body.String(), "aria-invalid")
}

// Somebody who is kept out by others must not think that it was he.
func TestARefusedLoginSaysWhatToDo(t *testing.T) {
	w := newWorld(t).withOwner()
	pages := map[string]string{}
	for _, email := range []string{owner, "nobody@example.com"} {
		for range 5 {
			w.from("203.0.113.1").login(email, "guess")
		}
		rec := w.from("192.0.2.1").accepting(browser).postForm("/login", "email", email, "password", ownerPassword)
		require.Equal(t, http.StatusTooManyRequests, rec.Code)
		require.Contains(t, rec.Body.String(), "Too many attempts at this account or from this address, perhaps by somebody else. "+
			`Try again in 15 minutes. <a href="/password-reset">Set a new password</a>`)
		pages[email] = strings.ReplaceAll(rec.Body.String(), email, "")
	}
	require.Equal(t, pages[owner], pages["nobody@example.com"])

	down := newWorld(t, denying)
	rec := down.from("192.0.2.1").accepting(browser).postForm("/login", "email", owner, "password", ownerPassword)
	require.Equal(t, http.StatusServiceUnavailable, rec.Code)
	require.NotContains(t, rec.Body.String(), "Set a new password", "it would not help")
}

func TestTheOutboxShowsWhenAMailWasWritten(t *testing.T) {
	w := newWorld(t, development)
	c := w.from("127.0.0.1")
	c.post("/password-reset", "email", DemoEmail)
	require.Contains(t, c.accepting(browser).get("/dev/outbox").Body.String(), w.clock().Format("2 January 2006, 15:04:05"))
	var mails []map[string]string
	decode(t, c.accepting("application/json").get("/dev/outbox"), &mails)
	require.Len(t, mails, 1)
	require.Len(t, mails[0], 4, "to, subject, text and link: %v", mails[0])
}

func TestANewPasswordTellsWhatEndsAndWhatStays(t *testing.T) {
	page := newWorld(t).from("192.0.2.1").get("/login?notice=password").Body.String()
	require.Contains(t, page, "All other sessions have ended, and no other device is known any more; API keys stay valid.")
}
