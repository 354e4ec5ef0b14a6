package authdemo

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
	"authguard/policies"
)

// perAccount are the presets with another limit for logins.
func perAccount(n int64) []guard.Policy {
	return policies.Override(policies.Default(), []guard.Policy{{Action: actLogin, Rules: []guard.Rule{{Name: "account", By: guard.ByAccount, Counts: guard.Failures,
		Limits: []limiter.Limit{limiter.SlidingWindow{Limit: n, Window: 15 * time.Minute}}}}}})
}

func giving(ps []guard.Policy, err error) func() ([]guard.Policy, guard.Lists, error) {
	return func() ([]guard.Policy, guard.Lists, error) { return ps, guard.Lists{}, err }
}

func (w *world) gauge(name string) (value float64) {
	w.Helper()
	c := w.from("127.0.0.1")
	c.host = "127.0.0.1:8080"
	for line := range strings.Lines(c.get("/metrics").Body.String()) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			_, err := fmt.Sscan(text, &value)
			require.NoError(w, err)
			return value
		}
	}
	require.Fail(w, "no metric", name)
	return 0
}

// A reload applies new numbers to what was counted; what cannot be loaded changes
// nothing, and the metrics say so.
func TestReload(t *testing.T) {
	w := newWorld(t).withOwner()
	last := func() (successful bool, at time.Time) {
		return w.gauge("authdemo_policies_last_reload_successful") == 1,
			time.Unix(int64(w.gauge("authdemo_policies_last_reload_success_timestamp_seconds")), 0)
	}
	started := w.clock()
	for range 3 {
		require.Equal(t, http.StatusUnauthorized, w.from("192.0.2.1").login(owner, "guess").Code)
	}
	w.advance(time.Minute)
	require.NoError(t, w.svc.Reload(giving(perAccount(3), nil)))
	ok, at := last()
	require.True(t, ok)
	require.Equal(t, started.Add(time.Minute), at)
	require.Equal(t, http.StatusTooManyRequests, w.from("192.0.2.1").login(owner, ownerPassword).Code)

	w.advance(time.Minute)
	broken := errors.New("limits.yaml:3:9: login/account: limit \"5 per 900\": 900 has no unit, write 900s")
	for want, load := range map[string]func() ([]guard.Policy, guard.Lists, error){
		broken.Error():                     giving(nil, broken),
		`no policy for this action: "otp"`: giving(policies.Default()[:2], nil),
		"has no rules":                     giving(policies.Override(policies.Default(), []guard.Policy{{Action: actLogin}}), nil),
	} {
		require.ErrorContains(t, w.svc.Reload(load), want)
		ok, at = last()
		require.False(t, ok)
		require.Equal(t, started.Add(time.Minute), at, "those in force are from then")
		require.Equal(t, http.StatusTooManyRequests, w.from("192.0.2.1").login(owner, ownerPassword).Code)
	}
	require.NoError(t, w.svc.Reload(giving(perAccount(4), nil)))
	ok, at = last()
	require.True(t, ok)
	require.Equal(t, started.Add(2*time.Minute), at)
	require.Equal(t, http.StatusOK, w.from("192.0.2.1").login(owner, ownerPassword).Code)
}

// Lists are replaced with the policies of their file, or neither is.
func TestReloadReplacesLists(t *testing.T) {
	w := newWorld(t).withOwner()
	denying := guard.Lists{DenyAccounts: []string{owner}}
	require.NoError(t, w.svc.Reload(func() ([]guard.Policy, guard.Lists, error) { return policies.Default(), denying, nil }))
	require.Equal(t, http.StatusTooManyRequests, w.from("192.0.2.1").login(owner, ownerPassword).Code)
	for _, broken := range []struct {
		policies []guard.Policy
		lists    guard.Lists
	}{
		{policies.Default()[:2], guard.Lists{}},
		{policies.Default(), guard.Lists{DenyAccounts: []string{""}}},
	} {
		require.Error(t, w.svc.Reload(func() ([]guard.Policy, guard.Lists, error) { return broken.policies, broken.lists, nil }))
		require.Equal(t, http.StatusTooManyRequests, w.from("192.0.2.1").login(owner, ownerPassword).Code)
	}
	require.NoError(t, w.svc.Reload(giving(policies.Default(), nil)))
	require.Equal(t, http.StatusOK, w.from("192.0.2.1").login(owner, ownerPassword).Code)
}

// Guesses that come while policies change in turns are no more than the larger limit.
func TestReloadUnderLoad(t *testing.T) {
	w := newWorld(t).withOwner()
	before := w.svc.Hasher().Computed()
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			c := w.from(fmt.Sprintf("192.0.2.%d", i))
			for range 10 {
				code := c.login(owner, "guess").Code
				if code != http.StatusUnauthorized && code != http.StatusTooManyRequests {
					t.Errorf("status %d", code)
				}
			}
		})
	}
	for i := range int64(40) {
		require.NoError(t, w.svc.Reload(giving(perAccount(3+i%3), nil)))
	}
	wg.Wait()
	computed := w.svc.Hasher().Computed() - before
	require.GreaterOrEqual(t, computed, int64(3))
	require.LessOrEqual(t, computed, int64(5))
}

// A new secret is no amnesty, keeps devices, and opens second factors, which are sealed
// anew by a right code; then the previous one is needed no more.
func TestANewSecret(t *testing.T) {
	old := newWorld(t)
	_, f := old.withFactor()
	known := old.from("192.0.2.1")
	require.Equal(t, http.StatusOK, known.login(owner, ownerPassword).Code)
	require.Equal(t, http.StatusOK, known.otp(old.code(f.key, 0)).Code)
	old.advance(time.Minute)
	for range 5 {
		old.from("192.0.2.2").login(owner, "guess")
	}
	next := []byte(strings.Repeat("n", 32))
	with := func(previous []byte) *world {
		w := newWorld(t, func(c *Config) {
			c.DB, c.Store, c.Now = old.svc.cfg.DB, old.svc.cfg.Store, old.clock
			c.Secret, c.PreviousSecret = next, previous
		})
		w.now = old.clock()
		return w
	}
	w := with(old.svc.cfg.Secret)
	require.Equal(t, http.StatusTooManyRequests, w.from("192.0.2.2").login(owner, ownerPassword).Code)
	c := w.from("192.0.2.1")
	c.cookies = known.cookies
	require.Equal(t, http.StatusOK, c.login(owner, ownerPassword).Code, "known")
	require.Equal(t, http.StatusOK, c.otp(w.code(f.key, 0)).Code)

	old.advance(15 * time.Minute)
	last := with(nil)
	c = last.halfIn("192.0.2.3")
	require.Equal(t, http.StatusOK, c.otp(last.code(f.key, 0)).Code)
}
