package guardtest

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A Table is the routes of an application, and what is known of each. Routes are
// written as http.ServeMux does, "POST /login"; without a method, a route is for
// any.
type Table struct {
	// Handler is the whole application. Its guard asks Store.
	Handler http.Handler
	Store   *Store

	// Routes are all that there are; see [ChiRoutes].
	Routes []string

	// Guarded are those that ask the guard first.
	Guarded []string

	// Unguarded are the others, each with the reason why it needs no guard.
	Unguarded map[string]string

	// Request makes a request of a method and a path in which 1 stands for each
	// parameter. It should be as good as one can be, with a session and all
	// fields, so that it gets as far as the secret if nothing refuses it. It is
	// called while the guard admits everything, so it may log in. Nil means a
	// request without anything.
	Request func(method, path string) *http.Request

	// Verified is how often any secret was compared so far.
	Verified func() int64
}

// EveryRoute checks, while the guard refuses everything, that
//
//   - each route is declared as guarded, or as unguarded with a reason;
//   - a guarded one asks the guard, answers 429 with a Retry-After and compares
//     nothing;
//   - an unguarded one does not ask the guard, and compares nothing either.
//
// Then the guard admits, and some guarded route must compare a secret: otherwise
// Verified or Request would be wrong, and nothing could fail.
func EveryRoute(t testing.TB, table Table) {
	t.Helper()
	if err := table.check(); err != "" {
		t.Fatalf("guardtest: %s", err)
	}
	defer table.Store.Refuse(false)
	for _, route := range slices.Compact(slices.Sorted(slices.Values(table.Routes))) {
		guarded := slices.Contains(table.Guarded, route)
		reason, unguarded := table.Unguarded[route]
		switch {
		case guarded && unguarded:
			t.Errorf("guardtest: %s is declared guarded and unguarded", route)
		case !guarded && !unguarded:
			t.Errorf("guardtest: %s is not declared: is it guarded, or why does it need no guard?", route)
		case unguarded && strings.TrimSpace(reason) == "":
			t.Errorf("guardtest: %s is declared unguarded without a reason", route)
		}
		table.refuse(t, route, guarded, unguarded)
	}
	for _, route := range slices.Concat(table.Guarded, slices.Sorted(maps.Keys(table.Unguarded))) {
		if !slices.Contains(table.Routes, route) {
			t.Errorf("guardtest: %s is declared, but there is no such route", route)
		}
	}
	table.admit(t)
}

func (table *Table) check() string {
	switch {
	case table.Handler == nil:
		return "Table.Handler is nil"
	case table.Store == nil:
		return "Table.Store is nil"
	case table.Verified == nil:
		return "Table.Verified is nil"
	case len(table.Routes) == 0:
		return "Table.Routes is empty"
	case len(table.Guarded) == 0:
		return "Table.Guarded is empty"
	}
	for _, route := range table.Routes {
		if _, path := split(route); !strings.HasPrefix(path, "/") {
			return fmt.Sprintf("Table.Routes has %q, want a method and a path such as %q", route, "POST /login")
		}
	}
	return ""
}

// refuse sends a route's requests while the guard refuses everything.
func (table *Table) refuse(t testing.TB, route string, guarded, unguarded bool) {
	t.Helper()
	refused := false
	var last answer
	for _, r := range table.requests(route) {
		table.Store.Refuse(true)
		compared, asked := table.Verified(), len(table.Store.Attempts())
		last = serve(table.Handler, r)
		compared, asked = table.Verified()-compared, len(table.Store.Attempts())-asked
		table.Store.Refuse(false)
		name := route
		if method, _ := split(route); method == "" {
			name = r.Method + " " + route
		}
		refused = refused || asked > 0
		switch {
		case compared > 0:
			t.Errorf("guardtest: %s compares a secret although the guard refuses everything", name)
		case guarded && asked > 0:
			if fault := last.fault(); fault != "" {
				t.Errorf("guardtest: %s is refused by the guard and %s", name, fault)
			}
		case unguarded && asked > 0:
			t.Errorf("guardtest: %s is declared unguarded, but asks the guard", name)
		case unguarded && last.status == http.StatusTooManyRequests:
			t.Errorf("guardtest: %s is declared unguarded, but answered 429", name)
		}
	}
	if guarded && !refused {
		t.Errorf("guardtest: %s is declared guarded, but does not ask the guard over Store, and is answered %v", route, last)
	}
}

// admit sends the guarded routes' requests until one compares a secret.
func (table *Table) admit(t testing.TB) {
	t.Helper()
	before := table.Verified()
	for _, route := range table.Guarded {
		if !slices.Contains(table.Routes, route) {
			continue
		}
		for _, r := range table.requests(route) {
			serve(table.Handler, r)
			if table.Verified() > before {
				return
			}
		}
	}
	t.Errorf("guardtest: no guarded route compares a secret when the guard admits it: does Verified count, and is Request good?")
}

// requests are those of a route: one, or one for each method.
func (table *Table) requests(route string) []*http.Request {
	method, pattern := split(route)
	path := filled(pattern)
	request := table.Request
	if request == nil {
		request = func(method, path string) *http.Request { return httptest.NewRequest(method, path, nil) }
	}
	if method != "" {
		return []*http.Request{request(method, path)}
	}
	var all []*http.Request
	for _, method := range methods[:7] {
		all = append(all, request(method, path))
	}
	return all
}

// split cuts a route into its method, or "", and its path's pattern.
func split(route string) (method, pattern string) {
	if method, pattern, found := strings.Cut(route, " "); found {
		return method, strings.TrimLeft(pattern, " ")
	}
	return "", route
}

var parameter = regexp.MustCompile(`\{[^{}]*(\{[^{}]*\}[^{}]*)*\}|\*`)

// filled is a pattern with 1 for each parameter.
func filled(pattern string) string {
	return parameter.ReplaceAllStringFunc(pattern, func(p string) string {
		if p == "{$}" { // the end of a path in http.ServeMux
			return ""
		}
		return "1"
	})
}
