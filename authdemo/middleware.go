package authdemo

import (
	"net"
	"net/http"
	"net/netip"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"authguard/authdemo/pages"
)

// logRequests writes one line a request, with the route's pattern: paths and
// queries are the client's text, and links have tokens in them.
func (s *Service) logRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
		defer func() {
			s.cfg.Log.InfoContext(r.Context(), "request", "method", r.Method,
				"route", chi.RouteContext(r.Context()).RoutePattern(), "status", ww.Status(), "took", time.Since(start))
		}()
		next.ServeHTTP(ww, r)
	})
}

// recoverPanics answers 500 where a handler panics, and logs the stack.
func (s *Service) recoverPanics(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // net/http compares it so, too
				panic(v)
			}
			s.cfg.Log.ErrorContext(r.Context(), "panic", "value", v, "stack", string(debug.Stack()))
			writeJSON(w, http.StatusInternalServerError, &problem{Code: "internal"})
		}()
		next.ServeHTTP(w, r)
	})
}

// contentPolicy permits one style sheet and forms to ourselves, nothing else.
const contentPolicy = "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// scriptPolicy permits the login page's script besides, its worker and its requests.
const scriptPolicy = contentPolicy + "; script-src 'self'; worker-src 'self'; connect-src 'self'"

func (s *Service) securityHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer") // mailed links have tokens in them
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		h.Set("Vary", "Accept")
		if s.secure() {
			h.Set("Strict-Transport-Security", "max-age=31536000")
		}
		next.ServeHTTP(w, r)
	})
}

// sameOrigin refuses what a page of another site has a browser post to us.
func (s *Service) sameOrigin(next http.Handler) http.Handler {
	p := http.NewCrossOriginProtection()
	p.SetDenyHandler(s.failing(errCrossOrigin))
	return p.Handler(next)
}

// onlyOurHost refuses other names than ours: what comes under them was not
// meant for us, or was sent by a page whose name somebody points here.
func (s *Service) onlyOurHost(next http.Handler) http.Handler {
	ours := isLoopbackHost
	if u := s.cfg.PublicURL; u != nil {
		want := bareHost(u.Host)
		ours = func(host string) bool { return bareHost(host) == want }
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !ours(r.Host) {
			s.refuse(w, r, errHost, pages.Error, pages.View{})
			return
		}
		next.ServeHTTP(w, r)
	})
}

// bareHost is a Host as it is compared: in lower case, without a default port.
func bareHost(host string) string {
	host = strings.ToLower(host)
	return strings.TrimSuffix(strings.TrimSuffix(host, ":443"), ":80")
}

// isLoopbackHost reports whether a Host is this machine under a loopback address
// or as localhost, with a port or without.
func isLoopbackHost(host string) bool {
	name := host
	if h, port, err := net.SplitHostPort(host); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return false
		}
		name = h
	} else if strings.HasPrefix(host, "[") {
		name = strings.TrimSuffix(host[1:], "]")
	}
	if strings.EqualFold(name, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr.Zone() == "" && addr.Unmap().IsLoopback()
}
