package guardtest_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/guardtest"
	"authguard/limiter"
)

// site is an application of several routes over an open store.
func site(t testing.TB, change func(*app, chi.Router)) (*app, guardtest.Table) {
	store := guardtest.Open(t)
	a := &app{guard: store.Guard(guard.Policy{Action: "login", Rules: []guard.Rule{
		{Name: "account", By: guard.ByAccount, Limits: []limiter.Limit{limiter.FixedWindow{Limit: 1, Window: 1e9}}}}})}
	r := chi.NewRouter()
	r.Post("/login", a.login)
	r.Get("/", func(http.ResponseWriter, *http.Request) {})
	r.Get("/users/{id:[0-9]{1,3}}/files/*", func(w http.ResponseWriter, r *http.Request) {
		require.Equal(t, []string{"1", "1"}, []string{chi.URLParam(r, "id"), chi.URLParam(r, "*")})
	})
	if change != nil {
		change(a, r)
	}
	a.Handler = r
	return a, guardtest.Table{
		Handler: a,
		Store:   store,
		Routes:  guardtest.ChiRoutes(r),
		Guarded: []string{"POST /login"},
		Unguarded: map[string]string{
			"GET /":                              "a page",
			"GET /users/{id:[0-9]{1,3}}/files/*": "a page",
		},
		Request:  request,
		Verified: a.compared.Count,
	}
}

// request is wrongLogin with another method and path.
func request(method, path string) *http.Request {
	r := wrongLogin()
	s := httptest.NewRequest(method, path, r.Body)
	s.Header = r.Header
	return s
}

func TestAGuardedSitePasses(t *testing.T) {
	a, table := site(t, nil)
	guardtest.EveryRoute(t, table)
	require.EqualValues(t, 1, a.compared.Count(), "when the guard admitted it")
	require.Len(t, table.Store.Attempts(), 2)
	table.Handler.ServeHTTP(httptest.NewRecorder(), wrongLogin())
	require.EqualValues(t, 2, a.compared.Count(), "the store admits again")
}

func TestRoutesOfServeMuxPass(t *testing.T) {
	a, table := site(t, nil)
	mux := http.NewServeMux()
	mux.HandleFunc("/login", a.login)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { require.Equal(t, "/", r.URL.Path) })
	mux.HandleFunc("GET /files/{path...}", func(w http.ResponseWriter, r *http.Request) { require.Equal(t, "1", r.PathValue("path")) })
	table.Handler = mux
	table.Routes = []string{"/login", "GET /{$}", "GET /files/{path...}"}
	table.Guarded = table.Routes[:1]
	table.Unguarded = map[string]string{"GET /{$}": "a page", "GET /files/{path...}": "a page"}
	table.Request = func(method, path string) *http.Request { return request(method, path+"?email="+victim) }
	guardtest.EveryRoute(t, table)
}

func TestTheRoutesOfMountedRoutersAreWalked(t *testing.T) {
	r, inner := chi.NewRouter(), chi.NewRouter()
	inner.Post("/otp", nil)
	r.Mount("/second", inner)
	r.Route("/first", func(r chi.Router) {
		r.With(func(h http.Handler) http.Handler { return h }).Put("/login", func(http.ResponseWriter, *http.Request) {})
	})
	routes := guardtest.ChiRoutes(r)
	slices.Sort(routes)
	require.Equal(t, []string{"POST /second/otp", "PUT /first/login"}, routes)
}

// MO-06: a route that forgot its guard, and what else may be wrong with a table.
func TestARouteOutsideTheGuardIsCaught(t *testing.T) {
	outer := t
	reauth := func(h func(*app) http.HandlerFunc) func(*app, chi.Router) {
		return func(a *app, r chi.Router) { r.Post("/reauth", h(a)) }
	}
	guarded := func(t *guardtest.Table) { t.Guarded = append(t.Guarded, "POST /reauth") }
	unguarded := func(t *guardtest.Table) { t.Unguarded["POST /reauth"] = "needs a session" }
	forgot := func(a *app) http.HandlerFunc { return a.unguarded }
	for name, tt := range map[string]struct {
		site   func(*app, chi.Router)
		change func(*guardtest.Table)
		want   []string
	}{
		"new": {reauth(forgot), nil, []string{
			"POST /reauth is not declared: is it guarded, or why does it need no guard?",
			"POST /reauth compares a secret although the guard refuses everything"}},
		"new and harmless": {reauth(func(*app) http.HandlerFunc { return func(http.ResponseWriter, *http.Request) {} }), nil, []string{"POST /reauth is not declared"}},
		"declared guarded": {reauth(forgot), guarded, []string{"POST /reauth compares a secret although",
			"POST /reauth is declared guarded, but does not ask the guard over Store, and is answered 401"}},
		"declared unguarded": {reauth(forgot), unguarded, []string{"POST /reauth compares a secret although the guard refuses"}},
		"guarded after the comparison": {reauth(func(a *app) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				a.verify(r.FormValue("email"))
				a.check(w, r)
			}
		}), guarded, []string{"POST /reauth compares a secret although"}},
		"guarded, but declared not to be": {reauth(func(a *app) http.HandlerFunc { return a.login }), unguarded,
			[]string{"POST /reauth is declared unguarded, but asks the guard"}},
		"limited by something else": {reauth(func(*app) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }
		}),
			unguarded, []string{"POST /reauth is declared unguarded, but answered 429"}},
		"asked and not obeyed": {reauth(func(a *app) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) { a.check(httptest.NewRecorder(), r) }
		}), guarded, []string{"POST /reauth is refused by the guard and is answered 200, want 429"}},
		"refused without Retry-After": {reauth(func(a *app) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if a.check(httptest.NewRecorder(), r) == nil {
					w.WriteHeader(429)
				}
			}
		}), guarded, []string{`POST /reauth is refused by the guard and is answered 429 with Retry-After ""`}},
		"HEAD is open": {func(a *app, r chi.Router) {
			r.HandleFunc("/reauth", func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodHead {
					a.verify(victim)
					return
				}
				a.login(w, r)
			})
		}, func(t *guardtest.Table) {
			t.Routes = append(slices.DeleteFunc(t.Routes, func(r string) bool { return strings.HasSuffix(r, "/reauth") }), "/reauth")
			t.Guarded = append(t.Guarded, "/reauth")
		}, []string{"HEAD /reauth compares a secret although the guard refuses everything"}},
		"no reason":             {nil, func(t *guardtest.Table) { t.Unguarded["GET /"] = " " }, []string{"GET / is declared unguarded without a reason"}},
		"both":                  {nil, func(t *guardtest.Table) { t.Unguarded["POST /login"] = "" }, []string{"POST /login is declared guarded and unguarded"}},
		"gone":                  {nil, func(t *guardtest.Table) { t.Unguarded["GET /old"] = "a page" }, []string{"GET /old is declared, but there is no such route"}},
		"gone from the guarded": {nil, func(t *guardtest.Table) { t.Guarded = append(t.Guarded, "old") }, []string{"old is declared, but there is no such route"}},
		"nothing counted":       {nil, func(t *guardtest.Table) { t.Verified = func() int64 { return 0 } }, []string{"no guarded route compares a secret when the guard admits it"}},
		"bad requests": {nil, func(t *guardtest.Table) { t.Request = nil }, []string{
			"POST /login is declared guarded, but does not ask the guard over Store, and is answered 400", "no guarded route compares a secret when the guard admits it"}},
		"another store": {nil, func(t *guardtest.Table) { t.Store = guardtest.Open(outer) }, []string{
			"POST /login compares a secret although", "POST /login is declared guarded, but does not ask the guard over Store, and is answered 401"}},
		"no handler":      {nil, func(t *guardtest.Table) { t.Handler = nil }, []string{"Table.Handler is nil"}},
		"no store":        {nil, func(t *guardtest.Table) { t.Store = nil }, []string{"Table.Store is nil"}},
		"no counter":      {nil, func(t *guardtest.Table) { t.Verified = nil }, []string{"Table.Verified is nil"}},
		"no routes":       {nil, func(t *guardtest.Table) { t.Routes = nil }, []string{"Table.Routes is empty"}},
		"nothing guarded": {nil, func(t *guardtest.Table) { t.Guarded = nil }, []string{"Table.Guarded is empty"}},
		"no path":         {nil, func(t *guardtest.Table) { t.Routes = []string{"login"} }, []string{`Table.Routes has "login", want a method and a path`}},
	} {
		t.Run(name, func(t *testing.T) {
			_, table := site(t, tt.site)
			require.Equal(t, tt.site != nil, slices.Contains(table.Routes, "POST /reauth"))
			if tt.change != nil {
				tt.change(&table)
			}
			said := failures(t, func(t testing.TB) { guardtest.EveryRoute(t, table) })
			require.Len(t, said, len(tt.want))
			for i, want := range tt.want {
				require.Contains(t, said[i], want)
			}
		})
	}
}
