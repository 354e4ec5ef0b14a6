package httpguard

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"

	"github.com/go-chi/chi/v5/middleware"
)

// Clients says how to find out who sends a request: from one source, whatever
// other headers say. Its zero value is for a server that clients reach directly.
type Clients struct {
	// TrustedProxies are the peers whose word on their clients is believed.
	TrustedProxies []netip.Prefix

	// Header is the one field in which they name the client. Empty means
	// X-Forwarded-For, to which each proxy appends: it is read from the right,
	// as far as proxies are trusted. Any other must be overwritten by the
	// proxy, as X-Real-IP is by nginx and CF-Connecting-IP by Cloudflare.
	Header string

	// DangerousTrustAnyPeer believes every peer, whatever its address: of
	// X-Forwarded-For the last entry. It is for servers that only one proxy can
	// reach, through a Unix socket or from addresses that nobody knows. Every
	// other client that reaches the server chooses its own address, and no limit
	// by address holds. It excludes TrustedProxies.
	DangerousTrustAnyPeer bool

	// Log is told of signs that a proxy is not trusted that should be, each
	// once; nil means slog.Default.
	Log *slog.Logger
}

// Middleware checks c and makes of it the middleware by which [ClientIP] knows
// the client. It leaves RemoteAddr as it is. A proxy that names nobody, or
// rubbish, is itself the client.
func (c Clients) Middleware() (func(http.Handler) http.Handler, error) {
	if err := c.validate(); err != nil {
		return nil, err
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	find := c.finder()
	watch := newForwardingWatch(c)
	return func(next http.Handler) http.Handler { return find(watch.handler(next)) }, nil
}

// finder is chi's middleware for c.
func (c Clients) finder() func(http.Handler) http.Handler {
	trusted := make([]string, len(c.TrustedProxies))
	for i, p := range c.TrustedProxies {
		trusted[i] = p.String()
	}
	appended := c.Header == "" || http.CanonicalHeaderKey(c.Header) == "X-Forwarded-For"
	switch {
	case len(trusted) == 0 && !c.DangerousTrustAnyPeer:
		return middleware.ClientIPFromRemoteAddr
	case !appended:
		return middleware.ClientIPFromHeader(c.Header, trusted...)
	case c.DangerousTrustAnyPeer:
		return middleware.ClientIPFromXFFTrustedProxies(1)
	}
	return middleware.ClientIPFromXFF(trusted...)
}

func (c Clients) validate() error {
	switch {
	case c.DangerousTrustAnyPeer && len(c.TrustedProxies) > 0:
		return errors.New("httpguard: Clients.DangerousTrustAnyPeer excludes TrustedProxies")
	case c.Header != "" && len(c.TrustedProxies) == 0 && !c.DangerousTrustAnyPeer:
		return fmt.Errorf("httpguard: Clients.Header is %q, but nobody is trusted to set it: TrustedProxies is empty", c.Header)
	}
	for _, p := range c.TrustedProxies {
		if !p.IsValid() {
			return errors.New("httpguard: Clients.TrustedProxies has an invalid prefix")
		}
		if p.Addr().Is4In6() {
			return fmt.Errorf("httpguard: Clients.TrustedProxies has %v, want IPv4 in its own form: no peer is ever compared with this one", p)
		}
		// The widest private ranges are 10.0.0.0/8 and fc00::/7.
		if p.Bits() < 7 || p.Bits() < 8 && p.Addr().Is4() {
			return fmt.Errorf("httpguard: Clients.TrustedProxies has %v: trusting so many lets clients choose their address", p)
		}
	}
	return nil
}

// ClientIP is the client's address: whom [Clients] or another of chi's
// ClientIPFrom middlewares found or, without one, the peer. It is the zero Addr
// if there is none, as on a Unix socket: a guard counts all those as one client.
func ClientIP(r *http.Request) netip.Addr {
	if addr := middleware.GetClientIPAddr(r.Context()); addr.IsValid() {
		return addr
	}
	return Peer(r)
}

// Peer is the address of the connection, or the zero Addr if it has none.
func Peer(r *http.Request) netip.Addr {
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	return ap.Addr().Unmap()
}
