// Package deploy_test holds the recipes in this folder against a real nginx in
// front of a guarded application.
package deploy_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
)

// Everybody in these tests is on loopback, but under addresses of their own.
const (
	customer = "127.0.0.9" // who sends requests
	front    = "127.0.0.2" // as whom a proxy that is in front of another speaks
	nearest  = "127.0.0.1" // as whom the nearest proxy speaks, unless told otherwise
)

// recipe is a file of this folder with replacements, in pairs, of what it must have.
func recipe(t *testing.T, file string, replaced ...string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	text := string(b)
	for i := 0; i < len(replaced); i += 2 {
		require.Contains(t, text, replaced[i], file)
		text = strings.ReplaceAll(text, replaced[i], replaced[i+1])
	}
	return text
}

// edge starts the recipe in front of the server at upstream.
func edge(t *testing.T, upstream string, replaced ...string) (addr string, log fmt.Stringer) {
	t.Helper()
	return testserver.Nginx(t, func(addr string) string {
		return recipe(t, "nginx.conf", append([]string{"listen 80;", "listen " + addr + ";", "127.0.0.1:8080", upstream}, replaced...)...)
	})
}

// client sends from an address of this machine.
func client(t *testing.T, from string) *http.Client {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(from, "0"))
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("%s is no address of this machine: %v", from, err)
		}
		t.Skipf("%s is no address of this machine: %v", from, err)
	}
	l.Close()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	asIs := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: asIs, Timeout: time.Minute}
}

// spoofed are the headers in which a client claims to be somebody else.
var spoofed = map[string]string{
	"X-Forwarded-For": "203.0.113.1, 127.0.0.1", "Forwarded": "for=203.0.113.2;by=127.0.0.1",
	"X-Real-IP": "203.0.113.3", "True-Client-IP": "203.0.113.4", "CF-Connecting-IP": "203.0.113.5",
}

func send(t *testing.T, c *http.Client, method, url, body string, headers map[string]string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	require.NoError(t, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	resp, err := c.Do(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(text)
}

// logs shows what a proxy saw, which must contain a line with want.
func logs(t *testing.T, name string, log fmt.Stringer, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return strings.Contains(log.String(), want) }, time.Minute, 5*time.Millisecond, "%s", log)
	t.Logf("%s saw:\n%s", name, log)
}

func TestNginxNamesTheClientWhateverItSaysOfItself(t *testing.T) {
	app := newApplication(t, nearest)
	addr, log := edge(t, app.addr)
	send(t, client(t, customer), "GET", "http://"+addr+"//x/%2e%2e/y?z=1", "", spoofed)
	logs(t, "nginx", log, customer+" ")
	got := app.last(t)
	require.Equal(t, netip.MustParseAddr(nearest), got.peer)
	require.Equal(t, netip.MustParseAddr(customer), got.client)
	require.Equal(t, []string{customer}, got.header["X-Forwarded-For"])
	for name := range spoofed {
		if name != "X-Forwarded-For" {
			require.Empty(t, got.header.Values(name), name)
		}
	}
	require.Equal(t, "//x/%2e%2e/y?z=1", got.uri, "the path is passed on as it was sent")
}

func TestARefusalPassesAsItIs(t *testing.T) {
	app := newApplication(t, nearest)
	addr, log := edge(t, app.addr)
	c := client(t, customer)
	const guess = "email=alice@example.com&password=guess"
	for range 5 {
		resp, _ := send(t, c, "POST", "http://"+addr+"/login", guess, spoofed)
		require.Equal(t, http.StatusUnauthorized, resp.StatusCode)
	}
	through, text := send(t, c, "POST", "http://"+addr+"/login", guess, spoofed)
	direct, plain := send(t, c, "POST", "http://"+app.addr+"/login", guess, nil)
	require.Equal(t, http.StatusTooManyRequests, through.StatusCode)
	require.Equal(t, "application/problem+json", through.Header.Get("Content-Type"))
	require.Equal(t, "900", through.Header.Get("Retry-After"))
	require.Contains(t, text, `"violated-policies":["login/account"]`)
	require.Equal(t, plain, text)
	for name, values := range direct.Header {
		if name != "Date" {
			require.Equal(t, values, through.Header[name], name)
		}
	}
	logs(t, "nginx", log, " 429 to ")
}

// The limit of ten accounts an hour counts the client, not nginx.
func TestEachClientBehindNginxHasLimitsOfItsOwn(t *testing.T) {
	app := newApplication(t, nearest)
	addr, _ := edge(t, app.addr)
	for _, from := range []string{customer, "127.0.0.10"} {
		c := client(t, from)
		for i := range 11 {
			spoofed := map[string]string{"X-Forwarded-For": fmt.Sprintf("203.0.113.%d", i)}
			resp, text := send(t, c, "POST", "http://"+addr+"/login", fmt.Sprintf("email=user%d@example.com&password=guess", i), spoofed)
			if i < 10 {
				require.Equal(t, http.StatusUnauthorized, resp.StatusCode, from)
				continue
			}
			require.Equal(t, http.StatusTooManyRequests, resp.StatusCode, from)
			require.Contains(t, text, "login/spraying")
		}
	}
}

func TestConnectionsToTheApplicationAreKept(t *testing.T) {
	app := newApplication(t, nearest)
	addr, _ := edge(t, app.addr)
	c := client(t, customer)
	connections := map[string]bool{}
	for range 20 {
		send(t, c, "GET", "http://"+addr+"/", "", nil)
	}
	for _, r := range app.seen() {
		require.Equal(t, "HTTP/1.1", r.proto)
		connections[r.connection] = true
	}
	t.Logf("20 requests came over %d connections", len(connections))
	require.Less(t, len(connections), 10)
}

// Of a flood nginx answers what is beyond its rate, and says when to come again.
func TestNginxStopsAFlood(t *testing.T) {
	app := newApplication(t, nearest)
	addr, _ := edge(t, app.addr, "rate=20r/s", "rate=1r/m", "burst=100", "burst=9") // so that the test is short and sure
	c := client(t, customer)
	stopped := 0
	for range 15 {
		resp, text := send(t, c, "GET", "http://"+addr+"/", "", nil)
		if resp.StatusCode == http.StatusOK {
			continue
		}
		stopped++
		require.Equal(t, http.StatusTooManyRequests, resp.StatusCode)
		require.Equal(t, "1", resp.Header.Get("Retry-After"))
		require.Equal(t, "application/problem+json", resp.Header.Get("Content-Type"))
		require.JSONEq(t, `{"title":"Too many requests","status":429,"error":"rate_limited","retry_after":1}`, text)
	}
	require.GreaterOrEqual(t, stopped, 1)
	require.Len(t, app.seen(), 15-stopped)
	require.LessOrEqual(t, 15-stopped, 12, "ten, and one for each minute that a slow machine takes")
	resp, _ := send(t, client(t, "127.0.0.10"), "GET", "http://"+addr+"/", "", nil)
	require.Equal(t, http.StatusOK, resp.StatusCode, "another client")
}

// Two in a row: the front one overwrites the field, and the nearest either finds the
// client itself or adds to the field. Who goes around the front one is himself.
func TestTwoProxiesInARow(t *testing.T) {
	const tell, add = "X-Forwarded-For $remote_addr;", "X-Forwarded-For $proxy_add_x_forwarded_for;"
	finding := func(replaced ...string) []string {
		lines := recipe(t, "nginx-behind.conf", append([]string{"10.0.0.0/24", front}, replaced...)...)
		return []string{"server {\n", "server {\n" + lines}
	}
	for _, c := range []struct {
		name           string
		inFront, after []string // replacements in the recipe
		trusted        []string
		want           string // X-Forwarded-For at the application
	}{
		{"the nearest finds the client", nil, finding(), []string{nearest}, customer},
		{"it finds it in a field of its own", []string{`CF-Connecting-IP "";`, "CF-Connecting-IP $remote_addr;"},
			finding("X-Forwarded-For;", "CF-Connecting-IP;"), []string{nearest}, customer},
		{"the nearest adds to the field", nil, []string{tell, add}, []string{nearest, front}, customer + ", " + front},
	} {
		t.Run(c.name, func(t *testing.T) {
			app := newApplication(t, c.trusted...)
			near, nearLog := edge(t, app.addr, c.after...)
			far, farLog := edge(t, near, append([]string{"proxy_http_version 1.1;", "proxy_http_version 1.1; proxy_bind " + front + ";"}, c.inFront...)...)
			who := client(t, customer)

			send(t, who, "GET", "http://"+far+"/", "", spoofed)
			got := app.last(t)
			require.Equal(t, netip.MustParseAddr(customer), got.client)
			require.Equal(t, c.want, got.header.Get("X-Forwarded-For"))
			logs(t, "the front nginx", farLog, customer+" ")
			logs(t, "the nearest nginx", nearLog, customer)

			send(t, who, "GET", "http://"+near+"/", "", spoofed)
			require.Equal(t, netip.MustParseAddr(customer), app.last(t).client, "around the front one")
		})
	}
}

// A balancer that passes connections on says first, in the PROXY protocol, whose
// each is.
func TestThePROXYProtocolNamesTheClient(t *testing.T) {
	app := newApplication(t, nearest)
	addr, log := testserver.Nginx(t, func(addr string) string {
		lines := recipe(t, "nginx-behind.conf", "10.0.0.0/24", front, "real_ip_header X-Forwarded-For;", "real_ip_header proxy_protocol;")
		return recipe(t, "nginx.conf", "listen 80;", "listen "+addr+" proxy_protocol;", "127.0.0.1:8080", app.addr, "server {\n", "server {\n"+lines)
	})
	for from, want := range map[string]string{front: "198.51.100.7", customer: customer} {
		client(t, from) // skips where there is no such address
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := dialer.DialContext(t.Context(), "tcp", addr)
		require.NoError(t, err)
		defer conn.Close()
		require.NoError(t, conn.SetDeadline(time.Now().Add(time.Minute)))
		fmt.Fprint(conn, "PROXY TCP4 198.51.100.7 127.0.0.1 40000 80\r\nGET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 203.0.113.1\r\n\r\n")
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, http.StatusOK, resp.StatusCode)
		require.Equal(t, netip.MustParseAddr(want), app.last(t).client, "by %s", from)
	}
	logs(t, "nginx", log, "198.51.100.7 ")
}

// What the document shows is what is proved here.
func TestTheDocumentShowsTheRecipes(t *testing.T) {
	doc, err := os.ReadFile("../deploy.md")
	require.NoError(t, err)
	for _, file := range []string{"nginx.conf", "nginx-behind.conf"} {
		require.Contains(t, string(doc), "```nginx\n"+recipe(t, file)+"```\n", file)
	}
}
