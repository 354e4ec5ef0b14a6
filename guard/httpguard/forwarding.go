package httpguard

import (
	"cmp"
	"log/slog"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// forwardingHeaders are those by which proxies tell whom they speak for.
var forwardingHeaders = []string{"X-Forwarded-For", "Forwarded", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip"}

// forwardedBy is the first forwarding header of a request, or "".
func forwardedBy(h http.Header) string {
	for _, name := range forwardingHeaders {
		if len(h[name]) > 0 {
			return name
		}
	}
	return ""
}

// Relayed reports any sign that a request was not sent by its peer: a proxy that
// says so in some header, or speaks HTTP/1.0, as proxies do that add none. It is
// for what only this machine may see; a proxy on it brings strangers along.
func Relayed(r *http.Request) bool {
	if !r.ProtoAtLeast(1, 1) || forwardedBy(r.Header) != "" {
		return true
	}
	for name := range r.Header {
		if name == "Via" || name == "X-Client-Ip" || strings.HasPrefix(name, "X-Forwarded-") {
			return true
		}
	}
	return false
}

// A forwardingWatch warns, once each, of signs that a proxy stands in front of a
// server that was not told of it: a forwarding header though nobody is trusted,
// one private peer that is not trusted and speaks for two clients, who then share
// one limit, and a peer without an address; and of one that is trusted but names
// its clients in a form that nobody reads, such as with a port.
type forwardingWatch struct {
	trusted  []netip.Prefix
	trustAny bool
	header   string // in which those that are trusted name the client
	log      *slog.Logger

	ignored, shared, nameless, unread sync.Once

	finished atomic.Bool // of shared

	mu      sync.Mutex
	clients map[netip.Addr]string // the first client that each peer named
}

// maxPeersWatched bounds the memory of a forwardingWatch.
const maxPeersWatched = 64

func newForwardingWatch(c Clients) *forwardingWatch {
	return &forwardingWatch{
		trusted:  c.TrustedProxies,
		trustAny: c.DangerousTrustAnyPeer,
		header:   http.CanonicalHeaderKey(cmp.Or(c.Header, "X-Forwarded-For")),
		log:      c.Log,
		clients:  make(map[netip.Addr]string),
	}
}

func (f *forwardingWatch) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.look(r)
		next.ServeHTTP(w, r)
	})
}

func (f *forwardingWatch) look(r *http.Request) {
	from := Peer(r)
	if f.trustAny || f.trusts(from) {
		f.readable(lastNamed(r.Header, f.header))
		return
	}
	if f.finished.Load() {
		return
	}
	if !from.IsValid() {
		f.nameless.Do(func() {
			f.log.Warn("a peer has no address, as on a Unix socket: all such clients share one limit; a proxy there needs Clients.DangerousTrustAnyPeer")
		})
		return
	}
	name := forwardedBy(r.Header)
	if name == "" {
		return
	}
	if len(f.trusted) == 0 {
		f.ignored.Do(func() {
			f.log.Warn("a forwarding header is ignored, because no proxy is trusted", "header", name)
		})
	}
	if !from.IsPrivate() && !from.IsLoopback() {
		return // anybody on the Internet may send anything
	}
	if f.speaksForTwo(from, lastNamed(r.Header, "X-Forwarded-For")) {
		f.shared.Do(func() {
			f.log.Warn("possible proxy misconfiguration: one private peer speaks for several clients, who share one limit; name it as a trusted proxy")
			f.finished.Store(true)
		})
	}
}

func (f *forwardingWatch) trusts(peer netip.Addr) bool {
	return slices.ContainsFunc(f.trusted, func(p netip.Prefix) bool { return p.Contains(peer.WithZone("")) })
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

// readable warns of a client that a trusted proxy names in vain.
func (f *forwardingWatch) readable(client string) {
	if client == "" {
		return
	}
	if _, err := netip.ParseAddr(client); err != nil {
		f.unread.Do(func() {
			f.log.Warn("a trusted proxy names its client by what is no address, such as one with a port: all its clients share one limit", "header", f.header)
		})
	}
}

// lastNamed is whom the nearest proxy named.
func lastNamed(h http.Header, header string) string {
	all := strings.Join(h[header], ",")
	return strings.TrimSpace(all[strings.LastIndexByte(all, ',')+1:])
}
