package authdemo

import (
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
)

// forwardingHeaders are those by which proxies tell whom they speak for.
var forwardingHeaders = []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip"}

func forwarded(h http.Header) bool {
	for _, name := range forwardingHeaders {
		if len(h[name]) > 0 {
			return true
		}
	}
	return false
}

// relayed reports any sign that a request was not sent by its peer: a proxy that
// says so in some header, or speaks HTTP/1.0, as proxies do that add none.
func relayed(r *http.Request) bool {
	if !r.ProtoAtLeast(1, 1) || forwarded(r.Header) {
		return true
	}
	for name := range r.Header {
		if name == "Via" || name == "X-Client-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return false
}

// A forwardingWatch warns, once each, of two signs that a proxy stands in
// front of a service that was not told of it: a forwarding header at all, and
// one private peer that speaks for two clients, who then share one limit.
type forwardingWatch struct {
	log      *slog.Logger
	ignored  sync.Once
	shared   sync.Once
	finished atomic.Bool // both were said

	mu      sync.Mutex
	clients map[netip.Addr]string // the first client that each peer named
}

// maxPeersWatched bounds the memory of a forwardingWatch.
const maxPeersWatched = 64

func newForwardingWatch(log *slog.Logger) *forwardingWatch {
	return &forwardingWatch{log: log, clients: make(map[netip.Addr]string)}
}

func (f *forwardingWatch) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !f.finished.Load() && forwarded(r.Header) {
			f.look(r)
		}
		next.ServeHTTP(w, r)
	})
}

func (f *forwardingWatch) look(r *http.Request) {
	f.ignored.Do(func() {
		f.log.Warn("a forwarding header is ignored, because no proxy is trusted")
	})
	from := peer(r)
	if !from.IsPrivate() && !from.IsLoopback() {
		return // anybody on the Internet may send anything
	}
	if f.speaksForTwo(from, lastForwardedFor(r.Header)) {
		f.shared.Do(func() {
			f.log.Warn("possible proxy misconfiguration: one private peer speaks for several clients, who share one limit; name it as a trusted proxy")
			f.finished.Store(true)
		})
	}
}

// speaksForTwo reports whether the peer named another client before.
func (f *forwardingWatch) speaksForTwo(from netip.Addr, client string) bool {
	if client == "" {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	first, known := f.clients[from]
	if !known && len(f.clients) < maxPeersWatched {
		f.clients[from] = client
	}
	return known && first != client
}

// lastForwardedFor is whom the nearest proxy named.
func lastForwardedFor(h http.Header) string {
	all := strings.Join(h["X-Forwarded-For"], ",")
	return strings.TrimSpace(all[strings.LastIndexByte(all, ',')+1:])
}
