package web

import (
	"io"
	"net/http"
	"net/netip"
	"time"

	"github.com/didip/tollbooth/v7"
	"github.com/go-chi/chi/v5"
	"github.com/go-chi/httprate"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// Names of rows that ratios speak of.
const bareChi = "floor: chi, no limit"

// A maker makes a handler that admits so many requests of a client, and then no
// more for as long as anything is measured.
type maker struct {
	name string
	make func(limit int) (http.Handler, error)
}

var makers = []maker{
	{bareChi, func(int) (http.Handler, error) { return route(), nil }},
	{"**ours**: guard, three limits", guarded},
	{"httprate, one limit", func(limit int) (http.Handler, error) {
		return route(httprate.LimitBy(limit, 24*time.Hour, byAddress)), nil
	}},
	{"httprate, three limits", func(limit int) (http.Handler, error) {
		return route(
			httprate.LimitBy(limit, 24*time.Hour, byAddress),
			httprate.LimitBy(limit, 24*time.Hour, byHeader("X-API-Key")),
			httprate.LimitBy(limit, 24*time.Hour, byHeader("X-Customer")),
		), nil
	}},
	{"tollbooth, one limit", func(limit int) (http.Handler, error) {
		l := tollbooth.NewLimiter(1.0/3600, nil).SetBurst(limit).SetIPLookups([]string{"RemoteAddr"})
		return route(func(next http.Handler) http.Handler { return tollbooth.LimitHandler(l, next) }), nil
	}},
}

// guarded is a route whose requests are charged to a key, its owner and the
// address, with the fields that tell of it.
func guarded(limit int) (http.Handler, error) {
	day := 24 * time.Hour
	g, err := guard.New(guard.Config{
		Store:  memstore.New(memstore.Config{}),
		Secret: []byte("of the benchmark"),
		Policies: []guard.Policy{{Action: "api", Rules: []guard.Rule{
			{Name: "key", By: guard.ByAPIKey, Limits: []limiter.Limit{limiter.TokenBucket{Capacity: int64(limit), Refill: int64(limit), Per: 30 * day}}},
			{Name: "owner", By: guard.ByAccount, Limits: []limiter.Limit{limiter.SlidingWindowCounter{Limit: int64(limit), Window: 15 * day}}},
			{Name: "ip", By: guard.ByIP, Limits: []limiter.Limit{limiter.FixedWindow{Limit: int64(limit), Window: 30 * day}}},
		}}},
	})
	if err != nil {
		return nil, err
	}
	edge, err := httpguard.New(httpguard.Config{Guard: g})
	if err != nil {
		return nil, err
	}
	return route(edge.Limit(func(r *http.Request) (guard.Attempt, bool) {
		return guard.Attempt{
			Action: "api", Account: r.Header.Get("X-Customer"), APIKey: r.Header.Get("X-API-Key"), IP: httpguard.ClientIP(r),
		}, true
	})), nil
}

func route(limits ...func(http.Handler) http.Handler) http.Handler {
	r := chi.NewRouter()
	r.With(limits...).Get("/api", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "done") })
	return r
}

func byAddress(r *http.Request) (string, error) {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	return httprate.CanonicalizeIP(peer.Addr().String()), err
}

func byHeader(name string) httprate.KeyFunc {
	return func(r *http.Request) (string, error) { return r.Header.Get(name), nil }
}

// request is what a client of the benchmark sends.
func request() *http.Request {
	r, _ := http.NewRequest(http.MethodGet, "http://127.0.0.1/api", nil) // a good URL
	r.Header.Set("X-API-Key", "0123456789abcdef")
	r.Header.Set("X-Customer", "someone@example.com")
	return r
}
