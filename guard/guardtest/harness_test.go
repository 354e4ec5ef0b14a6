package guardtest_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/guardtest"
	"authguard/guard/httpguard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// recorder is a test that keeps what it is told instead of failing.
type recorder struct {
	testing.TB
	mu     sync.Mutex
	errors []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// failures are what check tells a test of its own.
func failures(t testing.TB, check func(testing.TB)) []string {
	r := &recorder{TB: t}
	var wg sync.WaitGroup
	wg.Go(func() { check(r) })
	wg.Wait()
	return r.errors
}

// requireFailure is a check that must fail, and say so.
func requireFailure(t testing.TB, check func(testing.TB), want ...string) {
	t.Helper()
	said := strings.Join(failures(t, check), "\n")
	for _, w := range want {
		require.Contains(t, said, w)
	}
}

const victim = "alice@example.com"

// app is an application with a login, which its tests put faults into.
type app struct {
	http.Handler
	guard    *guard.Guard
	compared guardtest.Counter
}

func newApp(t testing.TB) *app {
	t.Helper()
	a := new(app)
	var err error
	a.guard, err = guard.New(guard.Config{
		Store:  memstore.New(memstore.Config{}),
		Secret: []byte("sixteen bytes or more"),
		Policies: []guard.Policy{{Action: "login", Rules: []guard.Rule{{Name: "account", By: guard.ByAccount,
			Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 5, Window: time.Hour}}, Counts: guard.Failures}}}},
	})
	require.NoError(t, err)
	return a
}

// verify compares a password, which is wrong.
func (a *app) verify(account string) {
	if account == victim {
		a.compared.Add()
	}
}

// check asks the guard, and answers if it refuses.
func (a *app) check(w http.ResponseWriter, r *http.Request) *guard.Pass {
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	pass, err := a.guard.Check(r.Context(), guard.Attempt{Action: "login", Account: r.FormValue("email"), IP: peer.Addr()})
	if err != nil {
		httpguard.Refuse(w, r, err)
		return nil
	}
	return pass
}

// login is as it should be.
func (a *app) login(w http.ResponseWriter, r *http.Request) {
	if pass := a.check(w, r); pass != nil {
		a.verify(pass.Account)
		pass.Fail(r.Context())
		w.WriteHeader(http.StatusUnauthorized)
	}
}

// unguarded forgets the guard.
func (a *app) unguarded(w http.ResponseWriter, r *http.Request) {
	a.verify(r.FormValue("email"))
	w.WriteHeader(http.StatusUnauthorized)
}

func (a *app) target() guardtest.Target {
	return guardtest.Target{Handler: a, Request: wrongLogin, Verified: a.compared.Count, Limit: 5}
}

func (a *app) bounded(t testing.TB) { guardtest.Bounded(t, a.target()) }

func wrongLogin() *http.Request {
	form := url.Values{"email": {victim}, "password": {"guess"}}
	r := httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return r
}
