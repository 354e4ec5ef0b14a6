package httpguard_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/testkit"
)

// found is a server that says whom it takes for the client.
func found(t testing.TB, c httpguard.Clients) (ask func(peer string, header ...string) string, log *testkit.Buffer) {
	t.Helper()
	log = new(testkit.Buffer)
	c.Log = slog.New(slog.NewTextHandler(log, nil))
	clients, err := c.Middleware()
	require.NoError(t, err)
	h := clients(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, httpguard.ClientIP(r), "|", r.RemoteAddr)
	}))
	return func(peer string, header ...string) string {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		for i := 0; i < len(header); i += 2 {
			r.Header.Add(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		client, remote, _ := strings.Cut(w.Body.String(), "|")
		require.Equal(t, peer, remote, "RemoteAddr stays as it is")
		return client
	}, log
}

func prefixes(all ...string) (p []netip.Prefix) {
	for _, s := range all {
		p = append(p, netip.MustParsePrefix(s))
	}
	return p
}

// CIP-01, CIP-03, CIP-06, CIP-07: the zero value believes no header at all.
func TestNoHeaderIsBelievedByDefault(t *testing.T) {
	for _, name := range []string{"X-Forwarded-For", "Forwarded", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP"} {
		ask, log := found(t, httpguard.Clients{})
		for range 3 {
			require.Equal(t, "198.51.100.9", ask("198.51.100.9:1", name, "127.0.0.1"))
		}
		require.Equal(t, 1, strings.Count(log.String(), "header="+http.CanonicalHeaderKey(name)), "told once, by name")
	}
}

func TestTheClientIsFoundFromOneSource(t *testing.T) {
	xff := httpguard.Clients{TrustedProxies: prefixes("10.0.0.0/8", "172.16.0.0/12", "fd00::/8")}
	real := httpguard.Clients{TrustedProxies: prefixes("10.0.0.1/32"), Header: "x-real-ip"}
	socket := httpguard.Clients{DangerousTrustAnyPeer: true}
	for _, c := range []struct {
		name    string
		clients httpguard.Clients
		peer    string
		header  []string
		want    string
	}{
		{"CIP-04: rubbish before", xff, "10.0.0.1:1", []string{"X-Forwarded-For", "junk, 198.51.100.9"}, "198.51.100.9"},
		{"CIP-10: a chain", xff, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9, 198.51.100.9, 172.16.0.1, 10.0.0.3"}, "198.51.100.9"},
		{"several lines", xff, "10.0.0.1:1", []string{"X-Forwarded-For", "9.9.9.9", "X-Forwarded-For", "198.51.100.9"}, "198.51.100.9"},
		{"CIP-02: no proxy", xff, "198.51.100.9:1", []string{"X-Forwarded-For", "10.0.0.7"}, "198.51.100.9"},
		{"CIP-06: another field", xff, "10.0.0.1:1", []string{"X-Forwarded-For", "198.51.100.9", "Forwarded", "for=127.0.0.1"}, "198.51.100.9"},
		{"CIP-13: nobody is named", xff, "10.0.0.1:1", nil, "10.0.0.1"},
		{"rubbish is named", xff, "10.0.0.1:1", []string{"X-Forwarded-For", "203.0.113.1, junk"}, "10.0.0.1"},
		{"V6-02: an IPv4 peer of a dual-stack listener", xff, "[::ffff:10.0.0.1]:1", []string{"X-Forwarded-For", "::ffff:198.51.100.9"}, "198.51.100.9"},
		{"V6-05: a spelling", xff, "[fd00::1]:1", []string{"X-Forwarded-For", "2001:0DB8:0:0::1%eth0"}, "2001:db8::1"},
		{"no peer", xff, "@", []string{"X-Forwarded-For", "198.51.100.9"}, "invalid IP"},
		{"one field", real, "10.0.0.1:1", []string{"X-Real-Ip", "198.51.100.9", "X-Forwarded-For", "9.9.9.9"}, "198.51.100.9"},
		{"one field from elsewhere", real, "192.0.2.1:1", []string{"X-Real-Ip", "198.51.100.9"}, "192.0.2.1"},
		{"a socket", socket, "@", []string{"X-Forwarded-For", "9.9.9.9, 198.51.100.9"}, "198.51.100.9"},
		{"an empty peer", socket, "", []string{"X-Forwarded-For", "198.51.100.9"}, "198.51.100.9"},
		{"a socket that names nobody", socket, "@", nil, "invalid IP"},
		{"no peer, trusting nobody", httpguard.Clients{}, "@", []string{"X-Forwarded-For", "198.51.100.9"}, "invalid IP"},
	} {
		ask, _ := found(t, c.clients)
		require.Equal(t, c.want, ask(c.peer, c.header...), c.name)
	}
}

func TestTrustOfAnybodyIsRefused(t *testing.T) {
	for want, c := range map[string]httpguard.Clients{
		"has 0.0.0.0/0: trusting so many": {TrustedProxies: prefixes("10.0.0.0/8", "0.0.0.0/0")},
		"has 128.0.0.0/1: ":               {TrustedProxies: prefixes("0.0.0.0/1", "128.0.0.0/1")[1:]},
		"has ::/0: trusting so many":      {TrustedProxies: prefixes("::/0")},
		"has 2000::/3: ":                  {TrustedProxies: prefixes("2000::/3")},
		"has ::ffff:0.0.0.0/96, want":     {TrustedProxies: prefixes("::ffff:0:0/96")},
		"invalid prefix":                  {TrustedProxies: []netip.Prefix{{}}},
		"nobody is trusted to set it":     {Header: "X-Real-IP"},
		"excludes TrustedProxies":         {DangerousTrustAnyPeer: true, TrustedProxies: prefixes("10.0.0.0/8")},
	} {
		_, err := c.Middleware()
		require.ErrorContains(t, err, want)
	}
	_, err := httpguard.Clients{TrustedProxies: prefixes("10.0.0.0/8", "fc00::/7")}.Middleware()
	require.NoError(t, err, "private ranges are not anybody")
}

// CIP-09: two clients behind one private peer share a limit; that is said once,
// also where other proxies are trusted.
func TestAProxyThatNobodyTrustsIsReported(t *testing.T) {
	for _, c := range []httpguard.Clients{{}, {TrustedProxies: prefixes("10.0.0.0/16")}} {
		ask, log := found(t, c)
		reported := func() int { return strings.Count(log.String(), "possible proxy misconfiguration") }
		for range 3 {
			ask("192.168.0.1:1", "X-Forwarded-For", "203.0.113.1")
			for n := range 3 {
				ask("198.51.100.9:1", "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n)) // anybody may send anything
				ask("10.0.0.1:1", "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n+1))
				if c.TrustedProxies == nil {
					break
				}
			}
		}
		require.Zero(t, reported())
		for n := range 3 {
			ask("192.168.0.1:1", "X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n))
		}
		require.Equal(t, 1, reported())
		require.NotContains(t, log.String(), "203.0.113")
		require.NotContains(t, log.String(), "192.168")
	}
}

// An address with a port, as some proxies write, is read as none: all clients are
// then the proxy, and that is said. What a client wrote further left is not.
func TestAProxyThatIsNotUnderstoodIsReported(t *testing.T) {
	for header, c := range map[string]httpguard.Clients{
		"X-Forwarded-For": {TrustedProxies: prefixes("10.0.0.0/8")},
		"X-Real-Ip":       {TrustedProxies: prefixes("10.0.0.0/8"), Header: "x-real-ip"},
		"x-forwarded-for": {DangerousTrustAnyPeer: true},
	} {
		ask, log := found(t, c)
		ask("10.0.0.1:1")
		ask("10.0.0.1:1", header, "203.0.113.1")
		if header == "X-Forwarded-For" {
			ask("10.0.0.1:1", header, "rubbish, 10.0.0.2")
			ask("198.51.100.9:1", header, "203.0.113.1:4711") // anybody may send anything
		}
		require.NotContains(t, log.String(), "no address", header)
		for range 3 {
			require.Equal(t, "10.0.0.1", ask("10.0.0.1:1", header, "203.0.113.1:4711"))
		}
		require.Equal(t, 1, strings.Count(log.String(), "no address"), header)
		require.NotContains(t, log.String(), "203.0.113")
	}
}

// A server on a Unix socket has peers without an address. Behind a proxy that is
// trusted they are told apart; otherwise they are one client, and that is said.
func TestBehindAUnixSocket(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		var log testkit.Buffer
		clients, err := httpguard.Clients{DangerousTrustAnyPeer: trusted, Log: slog.New(slog.NewTextHandler(&log, nil))}.Middleware()
		require.NoError(t, err)
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		require.NoError(t, err)
		s := newSite(t, nil, guard.Policy{Action: "login", Rules: []guard.Rule{{Name: "ip", By: guard.ByIP, Limits: per15m(2)}}})
		srv := httptest.NewUnstartedServer(clients(s.LimitAddress("login")(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, httpguard.ClientIP(r))
		}))))
		srv.Listener.Close()
		srv.Listener = l
		srv.Start()
		client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}}
		answers := ""
		for n := range 4 {
			r, err := http.NewRequest("GET", "http://socket/", nil)
			require.NoError(t, err)
			r.Header.Set("X-Forwarded-For", fmt.Sprintf("9.9.9.9, 203.0.113.%d", n))
			resp, err := client.Do(r)
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.NoError(t, err)
			resp.Body.Close()
			if resp.StatusCode == 200 && trusted {
				require.Equal(t, fmt.Sprintf("203.0.113.%d", n), string(body))
			}
			answers += fmt.Sprint(resp.StatusCode, " ")
		}
		client.CloseIdleConnections()
		srv.Close()
		want, warnings := "200 200 429 429 ", 1
		if trusted {
			want, warnings = "200 200 200 200 ", 0
		}
		require.Equal(t, want, answers)
		require.Equal(t, warnings, strings.Count(log.String(), "a peer has no address"))
	}
}

// V6-03, V6-06: through HTTP, an IPv6 /64 is one client, and an IPv4 address one.
func TestAddressesAreGroupedAsTheGuardGroupsThem(t *testing.T) {
	s := newSite(t, nil, guard.Policy{Action: "login", Rules: []guard.Rule{{Name: "ip", By: guard.ByIP, Limits: per15m(5)}}})
	h := s.LimitAddress("login")(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	from := func(peer string) int {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = peer
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	for n := 1; n <= 6; n++ {
		want := map[bool]int{true: 200, false: 429}[n <= 5]
		require.Equal(t, want, from(fmt.Sprintf("[2001:db8:1:2::%d]:1", n)))
		require.Equal(t, want, from("192.0.2.10:1"))
	}
	require.Equal(t, 200, from("[2001:db8:1:3::1]:1"))
	require.Equal(t, 200, from("192.0.2.11:1"))
	require.Equal(t, 429, from("[::ffff:192.0.2.10]:1"))
}

func TestRelayed(t *testing.T) {
	direct := httptest.NewRequest("GET", "/", nil)
	require.False(t, httpguard.Relayed(direct))
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Via", "X-Client-Ip"} {
		r := direct.Clone(t.Context())
		r.Header.Set(name, "x")
		require.True(t, httpguard.Relayed(r), name)
	}
	old := direct.Clone(t.Context())
	old.Proto, old.ProtoMajor, old.ProtoMinor = "HTTP/1.0", 1, 0
	require.True(t, httpguard.Relayed(old))
}
