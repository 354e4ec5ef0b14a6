package authdemo

import (
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/authdemo/password"
	"authguard/authdemo/proofofwork"
	"authguard/guard/httpguard"
)

// refusedWithAChallenge has ten accounts fail from an address and is the refusal of
// a login there.
func (c *client) refusedWithAChallenge(email, password string) httpguard.Problem {
	c.w.Helper()
	for i := range 10 {
		require.Equal(c.w, http.StatusUnauthorized, c.login(fmt.Sprintf("a%d@example.com", i), "guess").Code)
	}
	rec := c.login(email, password)
	require.Equal(c.w, http.StatusTooManyRequests, rec.Code)
	require.NotEmpty(c.w, rec.Header().Get("Retry-After"))
	var p httpguard.Problem
	decode(c.w, rec, &p)
	require.Equal(c.w, "challenge_required", p.Error)
	return p
}

// MO-07: whoever is asked for a challenge has nothing compared until it is solved,
// and then once.
func TestAChallengeIsSolvedBeforeAPasswordIsCompared(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.from("198.51.100.9")
	p := c.refusedWithAChallenge(owner, ownerPassword)
	require.Equal(t, proofofwork.Kind, p.Challenge.Kind)
	require.Equal(t, "19", p.Challenge.Params["bits"])
	answer, err := proofofwork.Solve(t.Context(), p.Challenge.Token)
	require.NoError(t, err)
	hashes := w.svc.Hasher().Computed()
	try := func(answer string) int {
		return c.post("/login", "email", owner, "password", ownerPassword, "challenge", answer).Code
	}
	for _, bad := range []string{"", p.Challenge.Token, p.Challenge.Token + ".0", answer + "0", " " + answer} {
		require.Equal(t, http.StatusTooManyRequests, try(bad), bad)
	}
	require.Equal(t, http.StatusTooManyRequests, w.from("198.51.100.9").post("/login", "email", "x@example.com", "password", "guess", "challenge", answer).Code)
	require.Equal(t, hashes, w.svc.Hasher().Computed())
	require.Equal(t, http.StatusOK, try(answer))
	c.cookies = map[string]*http.Cookie{}
	require.Equal(t, http.StatusTooManyRequests, try(answer), "an answer is good once")
}

// Without JavaScript the page says how long to wait, and what to do instead.
func TestTheLoginPageAsksForAChallenge(t *testing.T) {
	w := newWorld(t).withOwner()
	w.from("198.51.100.9").refusedWithAChallenge(owner, ownerPassword)
	c := w.from("198.51.100.9").accepting(browser)
	rec := c.postForm("/login", "email", owner, "password", ownerPassword)
	require.Equal(t, http.StatusTooManyRequests, rec.Code)
	page := rec.Body.String()
	require.Contains(t, page, "Solve the challenge, or try again in 60 minutes.")
	require.Contains(t, page, "It stops nobody who pays for more")
	require.Contains(t, page, "<noscript>")
	require.Contains(t, page, `value="owner@example.com"`)
	require.NotContains(t, page, ownerPassword)
	require.NotContains(t, page, "Set a new password", "it would not help")
	found := regexp.MustCompile(`data-token="([\w-]{50})" data-bits="19"`).FindStringSubmatch(page)
	require.NotNil(t, found, page)
	answer, err := proofofwork.Solve(t.Context(), found[1])
	require.NoError(t, err)
	rec = c.postForm("/login", "email", owner, "password", ownerPassword, "challenge", answer)
	require.Equal(t, http.StatusSeeOther, rec.Code)
	require.NotContains(t, c.get("/login").Body.String(), "data-token")
	for _, script := range []string{"/login.js", "/solver.js"} {
		require.Contains(t, c.get(script).Header().Get("Content-Type"), "javascript")
	}
}

// A known device takes a stranger's place at the gate, who is told to come again.
func TestAKnownDeviceGoesFirstAtTheGate(t *testing.T) {
	w := newWorld(t, func(c *Config) {
		c.Gate = password.GateConfig{Slots: 1, Waiting: 1, PerAddress: 1, MaxWait: time.Minute}
	}).withOwner()
	home := w.loggedIn("192.0.2.1")
	leave, err := w.svc.gate.Enter(t.Context(), password.Client{})
	require.NoError(t, err)
	join := func(c *client, email, typed string) (code chan int) {
		code = make(chan int, 1)
		go func() { code <- c.login(email, typed).Code }()
		return code
	}
	stranger := join(w.from("198.51.100.9"), "nobody@example.com", "guess")
	require.Eventually(t, func() bool { return w.svc.gate.Len() == 1 }, 10*time.Second, time.Millisecond)
	known := join(home, owner, ownerPassword)
	require.Equal(t, http.StatusServiceUnavailable, <-stranger)
	leave()
	require.Equal(t, http.StatusOK, <-known)
}
