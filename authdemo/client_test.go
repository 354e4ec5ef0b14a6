package authdemo

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
)

var fivePerAddress = only(actLogin, guard.Rule{Name: "ip", By: guard.ByIP,
	Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}}})

func behind(prefixes ...string) func(*Config) {
	return func(c *Config) {
		for _, p := range prefixes {
			c.TrustedProxies = append(c.TrustedProxies, netip.MustParsePrefix(p))
		}
	}
}

// spent sends six guesses with the header, each time another one, and reports
// whether the sixth was refused: whether they counted as one client's.
func (w *world) spent(peer string, header func(n int) http.Header) bool {
	w.Helper()
	c := w.from(peer)
	for n := range 5 {
		c.header = header(n)
		require.Equal(w, http.StatusUnauthorized, c.login(fmt.Sprintf("a%d@example.com", n), "guess").Code)
	}
	c.header = header(5)
	return c.login("a5@example.com", "guess").Code == http.StatusTooManyRequests
}

func xff(format string) func(int) http.Header {
	return func(n int) http.Header {
		return http.Header{"X-Forwarded-For": {strings.ReplaceAll(format, "N", fmt.Sprint(n))}}
	}
}

// CIP-01, CIP-03: without a trusted proxy no header names a client.
func TestForwardingHeadersAreIgnoredByDefault(t *testing.T) {
	for _, name := range []string{"X-Forwarded-For", "X-Real-Ip", "True-Client-Ip", "Cf-Connecting-Ip"} {
		w := newWorld(t, fivePerAddress)
		assert.True(t, w.spent("198.51.100.9", func(n int) http.Header {
			return http.Header{name: {fmt.Sprintf("203.0.113.%d", n)}}
		}), name)
		assert.Equal(t, 1, strings.Count(w.log.String(), "a forwarding header is ignored"))
	}
}

func TestClientBehindProxies(t *testing.T) {
	for name, tt := range map[string]struct {
		trusted []string
		peer    string
		header  func(int) http.Header
	}{
		"CIP-02: a peer that is no proxy": {[]string{"10.0.0.1/32"}, "198.51.100.9", xff("10.0.0.N")},
		"CIP-04: rubbish before":          {[]string{"10.0.0.1/32"}, "10.0.0.1", xff("junk-N, 198.51.100.9")},
		"CIP-06: localhost before":        {[]string{"10.0.0.1/32"}, "10.0.0.1", xff("127.0.0.1, 198.51.100.9")},
		"CIP-10: a chain of proxies":      {[]string{"10.0.0.0/8", "172.16.0.0/12"}, "10.0.0.1", xff("203.0.113.N, 198.51.100.9, 172.16.0.1, 10.0.0.N")},
		"CIP-13: nobody is named":         {[]string{"10.0.0.1/32"}, "10.0.0.1", xff("")},
		"rubbish alone":                   {[]string{"10.0.0.1/32"}, "10.0.0.1", xff("203.0.113.N, rubbish")},
		"CIP-07: another header agrees": {[]string{"10.0.0.1/32"}, "10.0.0.1", func(n int) http.Header {
			addr := fmt.Sprintf("203.0.113.%d", n)
			return http.Header{"X-Forwarded-For": {addr + ", 198.51.100.9"}, "Client-Ip": {addr}, "X-Real-Ip": {addr}, "Forwarded": {"for=" + addr}}
		}},
	} {
		w := newWorld(t, fivePerAddress, behind(tt.trusted...))
		assert.True(t, w.spent(tt.peer, tt.header), name)
		assert.NotContains(t, w.log.String(), "forwarding header")
	}
}

// CIP-09, CIP-11: each client behind a trusted proxy has its own budget, and
// cannot spend another's.
func TestClientsBehindOneProxyAreApart(t *testing.T) {
	w := newWorld(t, fivePerAddress, behind("10.0.0.1/32"))
	require.True(t, w.spent("10.0.0.1", xff("192.0.2.77, 198.51.100.9")))
	c := w.from("10.0.0.1")
	c.header = xff("192.0.2.77")(0)
	assert.Equal(t, http.StatusUnauthorized, c.login("a@example.com", "guess").Code)
}

// CIP-09
func TestAProxyThatIsNotTrustedIsReportedOnce(t *testing.T) {
	w := newWorld(t, fivePerAddress)
	misconfigured := func() int { return strings.Count(w.log.String(), "possible proxy misconfiguration") }
	c := w.from("10.0.0.1")
	for range 3 {
		c.header = xff("203.0.113.1")(0)
		c.get("/login")
	}
	assert.Zero(t, misconfigured(), "one client may have set it")
	for n := range 3 {
		c.header = xff("203.0.113.N")(n)
		c.get("/login")
	}
	assert.Equal(t, 1, misconfigured())

	w = newWorld(t)
	c = w.from("198.51.100.9")
	for n := range 3 {
		c.header = xff("203.0.113.N")(n)
		c.get("/login")
	}
	assert.Zero(t, misconfigured(), "anybody on the Internet may send anything")
}

func TestLogsHaveNoNamesAddressesOrSecrets(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.from("198.51.100.9")
	for range 6 {
		c.login(owner, "some guess")
	}
	other := w.from("192.0.2.1")
	other.login(owner, ownerPassword)
	other.header = xff("203.0.113.1")(0)
	for range 5 {
		other.post("/password-reset", "email", owner)
	}
	token := w.token(owner)
	other.get("/password-reset/confirm?token=" + token)
	other.post("/password-reset/confirm", "token", token, "password", "new words of mine")
	other.get("/" + owner)
	log := w.log.String()
	assert.Contains(t, log, "event=refused action=login rule=account subject=")
	assert.Contains(t, log, "event=silenced action=password_reset")
	assert.Contains(t, log, "event=unlocked")
	for _, secret := range []string{"owner", "198.51.100.9", "192.0.2.1", "203.0.113.1", "guess", "words", token} {
		assert.NotContains(t, log, secret)
	}
}

func TestARefusedSubjectIsLoggedOnce(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.from("198.51.100.9")
	refused := func() int { return strings.Count(w.log.String(), "event=refused action=login rule=account") }
	for range 20 {
		c.login(owner, "guess")
	}
	assert.Equal(t, 1, refused())
	w.advance(15 * time.Minute)
	for range 20 {
		c.login(owner, "guess")
	}
	assert.Equal(t, 2, refused())
}
