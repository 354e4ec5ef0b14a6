package deploy_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter/memstore"
	"authguard/policies"
)

// application is guarded, and remembers what it was sent.
type application struct {
	addr string

	mu  sync.Mutex
	all []request
}

// request is what an application saw of one.
type request struct {
	peer, client           netip.Addr
	connection, proto, uri string
	header                 http.Header
}

func (a *application) remember(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		a.all = append(a.all, request{httpguard.Peer(r), httpguard.ClientIP(r), r.RemoteAddr, r.Proto, r.RequestURI, r.Header.Clone()})
		a.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

func (a *application) seen() []request {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.all)
}

// last is the request that came last.
func (a *application) last(t *testing.T) request {
	t.Helper()
	all := a.seen()
	require.NotEmpty(t, all, "nothing came")
	r := all[len(all)-1]
	t.Logf("the application saw: peer %v, client %v, %s %s, X-Forwarded-For %q", r.peer, r.client, r.proto, r.uri, r.header["X-Forwarded-For"])
	return r
}

// newApplication serves a login that nobody gets through, with the presets, and
// whatever else at 200. It believes the proxies at the trusted addresses.
func newApplication(t *testing.T, trusted ...string) *application {
	t.Helper()
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	stopped := func() time.Time { return start } // so that two refusals are the same
	g, err := guard.New(guard.Config{
		Store: memstore.New(memstore.Config{Now: stopped}), Secret: []byte(strings.Repeat("s", 32)), Policies: policies.Default(), Now: stopped,
	})
	require.NoError(t, err)
	edge, err := httpguard.New(httpguard.Config{Guard: g})
	require.NoError(t, err)
	var prefixes []netip.Prefix
	for _, addr := range trusted {
		prefixes = append(prefixes, netip.PrefixFrom(netip.MustParseAddr(addr), 32))
	}
	clients, err := httpguard.Clients{TrustedProxies: prefixes}.Middleware()
	require.NoError(t, err)

	mux := http.NewServeMux()
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	mux.Handle("POST /login", edge.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "wrong e-mail address or password", http.StatusUnauthorized)
	})))
	a := new(application)
	server := httptest.NewServer(clients(a.remember(mux)))
	t.Cleanup(server.Close)
	a.addr = server.Listener.Addr().String()
	return a
}
