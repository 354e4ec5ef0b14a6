package authdemo

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter/memstore"
)

// warnings are the mails to an address that tell of something.
func (w *world) warnings(to string, of warning) []Mail {
	return slices.DeleteFunc(w.mails(to), func(m Mail) bool { return m.Subject != of.subject })
}

func (w *world) warned(to string, of warning) int { return len(w.warnings(to, of)) }

// guessedAt has somebody fail n times, and lets the window pass.
func (w *world) guessedAt(n int) {
	w.Helper()
	for i := range n {
		require.Equal(w, http.StatusUnauthorized, w.from(fmt.Sprintf("203.0.113.%d", i+1)).login(owner, "guess").Code)
	}
	w.advance(15 * time.Minute)
}

// provoked are the ways to have the owner warned.
func provoked() map[warning]func(w *world) {
	words, n := ownerPassword, 0
	var f second
	turnOff := func(w *world) {
		c := w.halfIn("192.0.2.3")
		require.Equal(w, http.StatusOK, c.otp(w.code(f.key, 0)).Code)
		w.advance(time.Minute)
		require.Equal(w, http.StatusNoContent, c.post("/account/otp/remove", "current", ownerPassword, "code", w.code(f.key, 0)).Code)
		w.advance(time.Minute)
		f = second{}
	}
	turnOn := func(w *world) { f = w.turnOn(owner) }
	locked := false
	return map[warning]func(w *world){
		warnLocked: func(w *world) {
			if !locked {
				w.guessAt(owner, failuresToLock)
				locked = true
			}
			requireLocked(w, w.from("203.0.113.1").login(owner, "guess"))
		},
		warnCode: func(w *world) {
			if f.key == "" {
				turnOn(w)
			}
			require.Equal(w, http.StatusUnauthorized, w.halfIn("203.0.113.1").otp(w.wrong(f.key)).Code)
		},
		warnNewDevice: func(w *world) {
			w.guessedAt(5)
			w.loggedIn("203.0.113.1")
		},
		warnPassword: func(w *world) {
			next := fmt.Sprint("new words of mine ", n)
			n++
			c := w.from("192.0.2.1")
			require.Equal(w, http.StatusOK, c.login(owner, words).Code)
			require.Equal(w, http.StatusNoContent, c.post("/account/password", "current", words, "new", next).Code)
			words = next
		},
		warnFactorOn: func(w *world) {
			turnOn(w)
			turnOff(w)
		},
		warnFactorOff: func(w *world) {
			turnOn(w)
			turnOff(w)
		},
	}
}

func TestOwnersAreWarnedOnceADay(t *testing.T) {
	for warning := range provoked() {
		w := newWorld(t).withOwner()
		provoke := provoked()[warning]
		provoke(w)
		require.Equal(t, 1, w.warned(owner, warning), warning.kind)
		mail := w.warnings(owner, warning)[0]
		require.Regexp(t, `^On \d+ January 2027 at \d\d:\d\d UTC `+regexp.QuoteMeta(warning.what), mail.Text)
		require.Contains(t, mail.Text, warning.todo)
		require.Contains(t, mail.Text, "https://login.example.com/password-reset\n")
		require.NotContains(t, mail.Text, "token")
		require.Empty(t, mail.Link)

		w.advance(time.Hour)
		provoke(w)
		require.Equal(t, 1, w.warned(owner, warning), "%s: not twice a day", warning.kind)
		w.advance(23 * time.Hour)
		provoke(w)
		require.Equal(t, 2, w.warned(owner, warning), "%s: again the next day", warning.kind)
		require.NotContains(t, w.log.String(), "mail not sent")
	}
}

// A day is a day for all processes that share the database, and after a restart.
func TestADayHoldsOverInstances(t *testing.T) {
	shared := memstore.New(memstore.Config{})
	db := filepath.Join(t.TempDir(), "demo.db")
	instance := func() *world {
		return newWorld(t, func(c *Config) { c.DB = db; c.Store = shared })
	}
	a := instance().withOwner()
	b := instance()
	total := func(ws ...*world) (n int) {
		for _, w := range ws {
			n += w.warned(owner, warnPassword)
		}
		return n
	}
	words := ownerPassword
	change := func(w *world, next string) {
		c := w.from("192.0.2.1")
		require.Equal(t, http.StatusOK, c.login(owner, words).Code)
		require.Equal(t, http.StatusNoContent, c.post("/account/password", "current", words, "new", next).Code)
		words = next
	}
	change(a, "first new words of mine")
	change(b, "second new words of mine")
	require.Equal(t, 1, total(a, b))
	restarted := instance()
	change(restarted, "third new words of mine")
	require.Equal(t, 1, total(a, b, restarted))
	restarted.advance(24 * time.Hour)
	change(restarted, "fourth new words of mine")
	require.Equal(t, 2, total(a, b, restarted))
}

// Nobody is mailed about an account that there is not, and no answer shows it: see
// TestAnUnknownAccountIsLockedLikeAKnownOne. A flood at a locked account, known or not,
// leaves room for the mails of others.
func TestWarningsAreNoOracleAndNoFlood(t *testing.T) {
	for _, email := range []string{owner, "nobody@example.com"} {
		w := newWorld(t).withOwner()
		hold := make(chan struct{})
		w.guessAt(email, failuresToLock)
		w.svc.mails.flush(t.Context())
		w.svc.mails.enqueue(func(context.Context) error { <-hold; return nil })
		for i := range 3 * mailPlaces {
			requireLocked(t, w.from(fmt.Sprintf("198.51.%d.%d", i/250, i%250)).login(email, "guess"))
		}
		w.from("192.0.2.1").post("/password-reset", "email", owner)
		close(hold)
		require.Len(t, w.links(owner), 1)
		require.NotContains(t, w.log.String(), "mail dropped")
		if email == owner {
			require.Equal(t, 1, w.warned(owner, warnLocked))
		} else {
			require.Len(t, w.mails(owner), 1)
			require.Empty(t, w.mails(email))
		}
	}
}

// Only strangers' lock, and only what came from a stranger after five failures.
func TestWhatOwnersAreNotWarnedOf(t *testing.T) {
	w := newWorld(t).withOwner()
	known := w.loggedIn("192.0.2.1")
	w.guessedAt(4)
	w.loggedIn("192.0.2.2")
	require.Zero(t, w.warned(owner, warnNewDevice), "four")
	w.guessedAt(5)
	require.Equal(t, http.StatusOK, known.login(owner, ownerPassword).Code)
	require.Zero(t, w.warned(owner, warnNewDevice), "a known device")

	for rec := known.login(owner, "guess"); !strings.Contains(rec.Body.String(), `"error":"locked"`); rec = known.login(owner, "guess") {
		w.advance(15 * time.Minute)
	}
	require.Zero(t, w.warned(owner, warnLocked), "the lock of the owner's devices locks no stranger")
	require.Empty(t, w.mails(owner))
}

// With a second factor the login is complete after the code, and only then told of.
func TestANewDeviceIsToldOfAfterTheLastFactor(t *testing.T) {
	w, f := newWorld(t).withFactor()
	w.guessedAt(5)
	c := w.halfIn("192.0.2.9")
	require.Zero(t, w.warned(owner, warnNewDevice))
	require.Equal(t, http.StatusOK, c.otp(w.code(f.key, 0)).Code)
	require.Equal(t, 1, w.warned(owner, warnNewDevice))
}

// A reset sets a password, too, and its mail names the time in no time zone but UTC.
func TestAResetIsToldOf(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.from("192.0.2.1")
	c.post("/password-reset", "email", strings.ToUpper(owner))
	require.Equal(t, http.StatusNoContent, c.post("/password-reset/confirm", "token", w.token(owner), "password", "new words of mine").Code)
	require.Equal(t, 1, w.warned(owner, warnPassword))
	require.Contains(t, w.mails(owner)[0].Text, "On 15 January 2027 at 08:00 UTC the password")
}
