package guardtest_test

import (
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/guard/guardtest"
)

func TestAGuardedHandlerIsBounded(t *testing.T) {
	for name, handler := range map[string]func(*app) http.Handler{
		"by ServeMux, for one method": func(a *app) http.Handler {
			mux := http.NewServeMux()
			mux.HandleFunc("POST /login", a.login)
			return mux
		},
		"for any method and path": func(a *app) http.Handler { return http.HandlerFunc(a.login) },
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t)
			a.Handler = handler(a)
			a.bounded(t)
			require.EqualValues(t, 5, a.compared.Count())
		})
	}
}

func TestAnyRequestHasItsSpellings(t *testing.T) {
	for _, path := range []string{"/", "/v1//login/", "/%6cogin", "/a%2fb/ü?x=1&y", "/-", "http://example.com"} {
		a := newApp(t)
		a.Handler = http.HandlerFunc(a.login)
		target := a.target()
		target.Request = func() *http.Request {
			r, err := http.NewRequestWithContext(t.Context(), "", path, nil) // without a body, as a client makes it
			require.NoError(t, err)
			r.URL.RawQuery += "&email=" + victim
			return r
		}
		guardtest.Bounded(t, target)
		require.EqualValues(t, 5, a.compared.Count())
	}
	requireFailure(t, func(t testing.TB) {
		a := newApp(t)
		target := a.target()
		target.Handler = http.HandlerFunc(a.login)
		target.Request = func() *http.Request { return httptest.NewRequest(http.MethodOptions, "*", nil) }
		guardtest.Bounded(t, target)
	}, `guardtest: Target.Request: the path is "*", want one that begins with /`)
}

// RC-01: what attempts in flight are not charged for is seen at one instant only.
func TestAChargeAfterTheComparisonIsCaught(t *testing.T) {
	a := newApp(t)
	var mu sync.Mutex
	failed := 0
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		refused := failed >= 5
		mu.Unlock()
		if refused {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		a.verify(r.FormValue("email"))
		mu.Lock()
		failed++
		mu.Unlock()
		w.WriteHeader(http.StatusUnauthorized)
	})
	requireFailure(t, a.bounded, "POST /login: 100 attempts at one instant had the secret compared", "want at most 5")
}

// Each spelling that is let through is named, and no other.
func TestAnUnguardedSpellingIsCaught(t *testing.T) {
	// otherwise guards what is spelled so, and lets the handler see the rest.
	otherwise := func(guarded func(*http.Request) bool) func(*app) http.Handler {
		return func(a *app) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if guarded(r) {
					a.login(w, r)
				} else {
					a.unguarded(w, r)
				}
			})
		}
	}
	// cleaned is where a router takes a path for /login.
	cleaned := func(clean func(string) string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.URL.Path == "/login" || clean(r.URL.Path) != "/login" }
	}
	for name, tt := range map[string]struct {
		handler func(*app) http.Handler
		through []string
		not     string
	}{
		"any path": {
			otherwise(func(r *http.Request) bool { return r.URL.EscapedPath() == "/login" }),
			[]string{"\n\tPOST, PUT, PATCH //login\n"}, "PATCH /login\n",
		},
		"a slash at the end": {otherwise(cleaned(func(p string) string { return strings.TrimSuffix(p, "/") })), []string{"\n\tPOST, PUT, PATCH /login/\n"}, " //login\n"},
		"slashes":            {otherwise(cleaned(func(p string) string { return "/" + strings.TrimLeft(p, "/") })), []string{"\n\tPOST, PUT, PATCH //login\n", "\n\tPOST, PUT, PATCH ///login\n"}, " /login/\n"},
		"dot segments":       {otherwise(cleaned(path.Clean)), []string{"\n\tPOST, PUT, PATCH /./login\n", "\n\tPOST, PUT, PATCH /guardtest/../login\n", "\n\tPOST, PUT, PATCH /%2e/login\n"}, " /LOGIN\n"},
		"capitals":           {otherwise(cleaned(strings.ToLower)), []string{"\n\tPOST, PUT, PATCH /LOGIN\n", "\n\tPOST, PUT, PATCH /Login\n"}, " /login\n"},
		"parameters": {
			otherwise(cleaned(func(p string) string { p, _, _ = strings.Cut(p, ";"); return p })),
			[]string{"\n\tPOST, PUT, PATCH /login;guardtest=1\n"}, " /login/\n",
		},
		"percent signs": {
			otherwise(func(r *http.Request) bool {
				return r.URL.Path != "/login" || r.URL.RawPath == "" && r.RequestURI == "/login"
			}),
			[]string{"\n\tPOST, PUT, PATCH /%6cogin\n", "\n\tPOST, PUT, PATCH /%6c%6f%67%69%6e\n"}, " /login/\n",
		},
		"queries": {
			otherwise(func(r *http.Request) bool { return r.URL.RawQuery == "" }),
			[]string{"\n\tPOST /login?guardtest=1"}, " /login/\n",
		},
		"the absolute form": {
			otherwise(func(r *http.Request) bool { return !r.URL.IsAbs() }),
			[]string{"\n\tPOST http://example.com/login"}, " /login/\n",
		},
		"HEAD": {
			otherwise(func(r *http.Request) bool { return r.Method != http.MethodHead }),
			[]string{"\n\tHEAD /login with the fields in the query"}, "\n\tPOST",
		},
		"OPTIONS": {
			otherwise(func(r *http.Request) bool { return r.Method != http.MethodOptions }),
			[]string{"\n\tOPTIONS /login with the fields in the query"}, "\n\tPOST",
		},
		"PUT":   {otherwise(func(r *http.Request) bool { return r.Method != http.MethodPut }), []string{"\n\tPUT /login"}, "PATCH"},
		"PATCH": {otherwise(func(r *http.Request) bool { return r.Method != http.MethodPatch }), []string{"\n\tPATCH /login"}, "PUT"},
		"a method in small letters": {
			otherwise(func(r *http.Request) bool { return r.Method == strings.ToUpper(r.Method) }),
			[]string{"\n\tpost, Post /login with the fields in the query\n"}, "PUT",
		},
		"an overridden method": {
			func(a *app) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Method == http.MethodPost && r.Header.Get("X-HTTP-Method-Override") == http.MethodPut {
						a.unguarded(w, r)
						return
					}
					a.login(w, r)
				})
			}, []string{"\n\tPOST /login with X-HTTP-Method-Override: PUT"}, "PATCH:",
		},
		"an overridden path": {
			otherwise(func(r *http.Request) bool { return r.Header.Get("X-Original-URL") != "/login" }),
			[]string{"\n\tPOST / with X-Original-URL: /login"}, "X-Rewrite-URL",
		},
		"JSON": {
			func(a *app) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.Header.Get("Content-Type") == "application/json" {
						a.verify(victim)
						return
					}
					a.login(w, r)
				})
			}, []string{"POST, PUT, PATCH, DELETE, OPTIONS, TRACE, QUERY, PROPFIND /login as JSON\n"}, "as a form",
		},
		// AC-10: the budget is that of a name in the query.
		"another field's budget": {
			func(a *app) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if name := r.URL.Query().Get("email"); name != "" && name != victim {
						a.verify(r.PostFormValue("email")) // another budget, which is all there
						return
					}
					a.login(w, r)
				})
			}, []string{"\n\tPOST /login?email=guardtest"}, "?password",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApp(t)
			a.Handler = tt.handler(a)
			said := strings.Join(failures(t, a.bounded), "\n") + "\n"
			for _, through := range tt.through {
				require.Contains(t, said, "the secret is compared beyond the limit of 5 by ")
				require.Contains(t, said, through)
			}
			require.NotContains(t, said, tt.not)
			require.NotContains(t, said, "attempts at one instant", "the plain request is guarded")
		})
	}
}

// HD-11: a refusal says when to come back.
func TestARefusalWithoutRetryAfterIsCaught(t *testing.T) {
	for name, tt := range map[string]struct {
		refuse func(http.ResponseWriter)
		want   string
	}{
		"no Retry-After": {func(w http.ResponseWriter) { w.WriteHeader(429) }, `answered 429 with Retry-After ""`},
		"Retry-After 0": {func(w http.ResponseWriter) {
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(429)
		}, `answered 429 with Retry-After "0"`},
		"a refusal as 403": {func(w http.ResponseWriter) { w.WriteHeader(403) }, "95 of 100 attempts were neither compared nor refused with 429, but answered (and how often): map[401:5 403:95]"},
		"a refusal as 200": {func(http.ResponseWriter) {}, "is answered 200, want 429 after 5 comparisons"},
		"a panic":          {func(http.ResponseWriter) { panic("a fault") }, "is answered by a panic (a fault), want 429"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t)
			a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				rec := httptest.NewRecorder()
				if a.login(rec, r); rec.Code == http.StatusTooManyRequests {
					tt.refuse(w)
					return
				}
				w.WriteHeader(rec.Code)
			})
			requireFailure(t, a.bounded, tt.want)
		})
	}
	a := newApp(t)
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := httptest.NewRecorder()
		a.login(rec, r)
		if r.Method != http.MethodPut { // an answer of its own
			w.Header().Set("Retry-After", rec.Header().Get("Retry-After"))
		}
		w.WriteHeader(rec.Code)
	})
	requireFailure(t, a.bounded, "429 without Retry-After by \n\tPUT /login")
}

// A test that cannot fail is none.
func TestATargetThatProvesNothingIsCaught(t *testing.T) {
	a := newApp(t)
	a.Handler = http.HandlerFunc(a.login)
	for want, change := range map[string]func(*guardtest.Target){
		"Target.Handler is nil":                             func(t *guardtest.Target) { t.Handler = nil },
		"Target.Request is nil":                             func(t *guardtest.Target) { t.Request = nil },
		"Target.Verified is nil":                            func(t *guardtest.Target) { t.Verified = nil },
		"Target.Limit is 0":                                 func(t *guardtest.Target) { t.Limit = 0 },
		"the secret is never compared":                      func(t *guardtest.Target) { t.Verified = func() int64 { return 7 } },
		"POST /login is refused after 5":                    func(t *guardtest.Target) { t.Limit = 6 },
		"want at most 4":                                    func(t *guardtest.Target) { t.Limit = 4 },
		"is answered 404, and the secret is never compared": func(t *guardtest.Target) { t.Handler = http.NotFoundHandler() },
	} {
		a := newApp(t)
		a.Handler = http.HandlerFunc(a.login)
		target := a.target()
		change(&target)
		requireFailure(t, func(t testing.TB) { guardtest.Bounded(t, target) }, want)
	}
	a.bounded(t)
	requireFailure(t, a.bounded, "the secret is never compared") // all five are spent
}

func TestAHandlerWithoutALimitIsCaught(t *testing.T) {
	a := newApp(t)
	a.Handler = http.HandlerFunc(a.unguarded)
	requireFailure(t, a.bounded, "compared 100 times, want at most 5", "is answered 401, want 429 after 101 comparisons")
}

// MO-07
func TestAComparisonBeforeTheCheckIsCaught(t *testing.T) {
	a := newApp(t)
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.verify(victim)
		a.check(w, r)
	})
	requireFailure(t, a.bounded, "compared 100 times, want at most 5", "POST /login is answered 429, but has the secret compared all the same")
}

// Where there is no room for a hundred at once, some are turned away with 503;
// the rest of the limit is spent one by one.
func TestABusyHandlerIsBoundedToo(t *testing.T) {
	a := newApp(t)
	room := make(chan struct{}, 1)
	a.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case room <- struct{}{}:
			defer func() { <-room }()
			a.login(w, r)
		default:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	a.bounded(t)
	require.EqualValues(t, 5, a.compared.Count())
}
