package authdemo

import (
	"net/http"
	"net/netip"

	"github.com/go-chi/chi/v5/middleware"
)

// clientAddress finds out who is asking: the peer of the connection or, where
// proxies are trusted, whom they name in X-Forwarded-For, read from the right.
// No other header is ever read. RemoteAddr stays as it is.
func (s *Service) clientAddress(next http.Handler) http.Handler {
	if len(s.cfg.TrustedProxies) == 0 {
		return middleware.ClientIPFromRemoteAddr(newForwardingWatch(s.cfg.Log).handler(next))
	}
	trusted := make([]string, len(s.cfg.TrustedProxies))
	for i, p := range s.cfg.TrustedProxies {
		trusted[i] = p.String()
	}
	return middleware.ClientIPFromXFF(trusted...)(next)
}

// clientIP is the address that clientAddress found. Where a trusted proxy
// names nobody, or rubbish, it is the proxy's own: all such requests share one
// budget, and a client gains nothing by them.
func clientIP(r *http.Request) netip.Addr {
	if addr := middleware.GetClientIPAddr(r.Context()); addr.IsValid() {
		return addr
	}
	return peer(r)
}

// peer is the address of the connection, or the zero Addr if it has none.
func peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}
