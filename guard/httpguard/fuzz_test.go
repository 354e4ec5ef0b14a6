package httpguard_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/guard/httpguard"
)

// Whatever X-Forwarded-For says: the client is the peer, or whom the peer's own
// proxies name; never an address that nobody but the client has written.
func FuzzForwarded(f *testing.F) {
	proxies := []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("fd00::/8"),
	}
	for _, peer := range []string{"10.0.0.1:80", "198.51.100.9:80", "[::ffff:10.0.0.1]:80", "[fd00::1%eth0]:80", "@"} {
		for _, header := range []string{
			"", ",", " , ", "203.0.113.1", "203.0.113.1, 198.51.100.9", "203.0.113.1\n198.51.100.9", "203.0.113.1, 10.0.0.2,10.0.0.3",
			"203.0.113.1, junk, 10.0.0.2", "203.0.113.1, junk", "::ffff:203.0.113.1", "2001:db8::1%eth0, fd00::2", "[2001:db8::1]:80", "203.0.113.1:80",
			"10.0.0.9", "\"203.0.113.1\"", "for=203.0.113.1", "203.0.113.1,,\n,10.0.0.2,", "010.0.0.1", "0", "unknown",
		} {
			f.Add(peer, header)
		}
	}
	f.Fuzz(func(t *testing.T, peer, header string) {
		peer = asTold(peer)
		for _, trusted := range [][]netip.Prefix{nil, proxies} {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.RemoteAddr = peer
			r.Header["X-Forwarded-For"] = strings.Split(header, "\n")
			for _, name := range []string{"Forwarded", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip"} {
				r.Header.Set(name, "203.0.113.77") // is never read
			}
			var got netip.Addr
			clients, err := httpguard.Clients{TrustedProxies: trusted, Log: slog.New(slog.DiscardHandler)}.Middleware()
			require.NoError(t, err)
			clients(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = httpguard.ClientIP(r) })).
				ServeHTTP(httptest.NewRecorder(), r)
			require.Equal(t, peer, r.RemoteAddr)
			require.Equal(t, vouchedFor(peer, header, trusted), got.WithZone(""), "trusting %v", trusted)
		}
	})
}

// asTold is the peer as net/http tells it: an address with its port, or, of a
// connection that has none, something else.
func asTold(peer string) string {
	ap, err := netip.ParseAddrPort(peer)
	if err != nil {
		return "@"
	}
	addr := ap.Addr()
	if addr.Zone() != "" {
		addr = addr.WithZone("eth0")
	}
	return netip.AddrPortFrom(addr, ap.Port()).String()
}

// vouchedFor walks from the connection towards the client: as long as who speaks
// is trusted, whom it names speaks next. Where one that is trusted names nobody,
// or something that is no address, all that is known is the peer. (An address
// with a port is none.)
func vouchedFor(peer, header string, trusted []netip.Prefix) netip.Addr {
	ap, err := netip.ParseAddrPort(peer)
	if err != nil {
		return netip.Addr{}
	}
	plain := func(a netip.Addr) netip.Addr { return a.Unmap().WithZone("") }
	isTrusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	from := plain(ap.Addr())
	var chain []string // from the client on
	for _, entry := range strings.FieldsFunc(header, func(r rune) bool { return r == ',' || r == '\n' }) {
		if entry = strings.TrimSpace(entry); entry != "" {
			chain = append(chain, entry)
		}
	}
	speaker := from
	for isTrusted(speaker) {
		if len(chain) == 0 {
			return from
		}
		named, err := netip.ParseAddr(chain[len(chain)-1])
		if err != nil {
			return from
		}
		chain, speaker = chain[:len(chain)-1], plain(named)
	}
	return speaker
}
