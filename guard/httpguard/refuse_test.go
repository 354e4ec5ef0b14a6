package httpguard_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rs/cors"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
)

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

func TestPrefers(t *testing.T) {
	const html, json = "text/html", "application/json"
	for accept, want := range map[string][2]bool{ // HTML, JSON
		"":                                       {false, false},
		"*/*":                                    {false, false},
		browser:                                  {true, false},
		"application/json":                       {false, true},
		"application/json, text/html;q=0.9":      {false, true},
		"text/html;q=0.2, application/*;q=.1":    {true, false},
		"text/*, application/json;q=0.5":         {true, false},
		"text/html;q=0, */*":                     {false, true},
		"TEXT/HTML":                              {true, false},
		"text/html;q=x":                          {false, false},
		"text/html;q=2":                          {false, false},
		"text/html;q=-1, application/json;q=NaN": {false, false},
		";;;":                                    {false, false},
		strings.Repeat(" ", 513) + browser:       {false, false},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		if accept != "" {
			r.Header.Set("Accept", accept)
		}
		require.Equal(t, want, [2]bool{httpguard.Prefers(r, html, json), httpguard.Prefers(r, json, html)}, accept)
	}
}

var denial = &guard.Denied{Action: "login", Rules: []string{"account"}, RetryAfter: 15 * time.Minute}

func refused(refuse func(http.ResponseWriter, *http.Request, error), accept string, err error) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/login", nil)
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	refuse(w, r, err)
	return w
}

func TestABrowserGetsAPage(t *testing.T) {
	w := refused(httpguard.Refuse, browser, denial)
	require.Equal(t, 429, w.Code)
	require.Equal(t, "900", w.Header().Get("Retry-After"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "text/html; charset=utf-8", w.Header().Get("Content-Type"))
	for _, part := range []string{"<!DOCTYPE html>", `<html lang="en">`, "<title>Too many attempts</title>", "<main><h1>Too many attempts</h1><p>Try again in 15 minutes.</p></main>"} {
		require.Contains(t, w.Body.String(), part)
	}
	require.Contains(t, refused(httpguard.Refuse, browser, errors.New("10.0.0.3 is down")).Body.String(), "<main><h1>Internal error</h1></main>")

	for _, accept := range []string{"", "*/*", "application/problem+json, text/html;q=0.1", "application/json"} {
		require.Equal(t, "application/problem+json", refused(httpguard.Refuse, accept, denial).Header().Get("Content-Type"), accept)
	}
}

// HD-11: an application's own page comes with everything that a refusal needs.
func TestAnApplicationDrawsItsOwnPage(t *testing.T) {
	s := newSite(t, func(c *httpguard.Config) {
		c.Page = func(w http.ResponseWriter, r *http.Request, p httpguard.Problem) {
			w.WriteHeader(p.Status)
			io.WriteString(w, "our page: "+p.Detail)
		}
	})
	w := refused(s.Refuse, browser, denial)
	require.Equal(t, 429, w.Code)
	require.Equal(t, "900", w.Header().Get("Retry-After"))
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Equal(t, "our page: Try again in 15 minutes.", w.Body.String())
	require.Contains(t, refused(s.Refuse, "", denial).Body.String(), "quota-exceeded")
}

func TestFaultsAreLoggedAndRefusalsAreNot(t *testing.T) {
	s := newSite(t, nil)
	refused(s.Refuse, "", denial)
	refused(s.Refuse, "", guard.ErrUnavailable) // the guard's observer knows
	require.Empty(t, s.log.String())
	for range 2 {
		require.NotContains(t, refused(s.Refuse, "", errors.New("disk is full")).Body.String(), "disk")
	}
	require.Equal(t, 2, strings.Count(s.log.String(), "disk is full"))
}

// A page of another origin logs in as browsers do, through CORS middleware
// outside: the pre-flight is charged nothing and always passes, and the refusal
// and its Retry-After can be read.
func TestAPageOfAnotherOriginCanReadTheRefusal(t *testing.T) {
	for _, passthrough := range []bool{false, true} {
		s := newSite(t, nil)
		limited := s.LimitAddress("login")(s.Guard("login", httpguard.Field("email"))(
			http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) })))
		srv := httptest.NewServer(cors.New(cors.Options{
			AllowedOrigins: []string{"https://app.example"}, AllowedMethods: []string{"POST"}, AllowedHeaders: []string{"Content-Type"},
			ExposedHeaders: []string{"X-Request-Id"}, OptionsPassthrough: passthrough,
		}).Handler(limited))
		defer srv.Close()
		send := func(method, body string, header ...string) *http.Response {
			r, err := http.NewRequest(method, srv.URL, strings.NewReader(body))
			require.NoError(t, err)
			r.Header.Set("Origin", "https://app.example")
			for i := 0; i < len(header); i += 2 {
				r.Header.Set(header[i], header[i+1])
			}
			resp, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			resp.Body.Close()
			return resp
		}
		for i := range 8 {
			resp := send("OPTIONS", "", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type")
			require.Equal(t, 204, resp.StatusCode)
			require.Equal(t, "https://app.example", resp.Header.Get("Access-Control-Allow-Origin"))
			require.Equal(t, "POST", resp.Header.Get("Access-Control-Allow-Methods"))

			resp = send("POST", bob, "Content-Type", "application/json")
			require.Equal(t, "https://app.example", resp.Header.Get("Access-Control-Allow-Origin"), "else the browser hides status and fields")
			exposed := resp.Header.Get("Access-Control-Expose-Headers")
			require.Contains(t, exposed, "X-Request-Id", "what others expose stays")
			if i < 5 {
				require.Equal(t, 401, resp.StatusCode)
				continue
			}
			require.Equal(t, 429, resp.StatusCode)
			require.NotEmpty(t, resp.Header.Get("Retry-After"))
			require.Contains(t, exposed, "Retry-After")
			require.Equal(t, 1, strings.Count(exposed, "Retry-After"))
			require.Len(t, resp.Header.Values("Access-Control-Expose-Headers"), 1)
		}
		status, err := s.guard.Inspect(t.Context(), guard.Attempt{Action: "login", IP: netip.MustParseAddr("127.0.0.1")})
		require.NoError(t, err)
		require.EqualValues(t, 8+5, status[0].Used(), "no pre-flight was charged")
	}
}

func TestFieldsAreExposedToOtherOriginsOnly(t *testing.T) {
	for _, d := range dialects {
		s := newSite(t, func(c *httpguard.Config) { c.Fields = d }, apiPolicies()...)
		h := s.LimitAddress("door")(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		require.Empty(t, post(h, "").Header().Get("Access-Control-Expose-Headers"))
		r := httptest.NewRequest("GET", "/", nil)
		r.Header.Set("Origin", "https://app.example")
		w := httptest.NewRecorder()
		w.Header().Add("Access-Control-Expose-Headers", "etag, Ratelimit")
		w.Header().Add("Access-Control-Expose-Headers", "X-Other")
		h.ServeHTTP(w, r)
		exposed := strings.Split(w.Header().Get("Access-Control-Expose-Headers"), ", ")
		for name := range w.Header() {
			if strings.Contains(name, "Ratelimit") {
				require.True(t, contains(exposed, name), "%v: %s in %v", d, name, exposed)
			}
		}
		require.True(t, contains(exposed, "ETag") && contains(exposed, "X-Other"))
	}
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}
