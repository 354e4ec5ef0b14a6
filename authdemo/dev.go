package authdemo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"authguard/authdemo/accounts"
	"authguard/authdemo/pages"
	"authguard/guard/httpguard"
	"authguard/internal/fields"
)

// The account that development mode restores at each start.
const (
	DemoEmail    = "demo@example.com"
	DemoPassword = "correct horse battery staple"
)

// seed makes the demo account, or makes it anew: whatever became of it before,
// its published password is right, no API key is taken and no session open, so
// that what is printed at the start works every time.
func (s *Service) seed(ctx context.Context) error {
	return s.accounts.Restore(ctx, DemoEmail, s.hasher.Hash(DemoPassword))
}

// refuseSeed reports a database of development mode: outside of it, an account
// whose password everybody knows must not be served.
func (s *Service) refuseSeed(ctx context.Context) error {
	a, err := s.accounts.ByEmail(ctx, DemoEmail)
	if errors.Is(err, accounts.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	published, err := s.hasher.Verify(DemoPassword, a.PasswordHash)
	if published {
		return fmt.Errorf("authdemo: database %s has the demo account with its published password; use another one outside development mode", s.cfg.DB)
	}
	return err
}

// fromHere reports that a client on this machine came directly: a proxy on this
// machine brings strangers along.
func fromHere(r *http.Request) bool {
	return httpguard.Peer(r).IsLoopback() && isLoopbackHost(r.Host) && !httpguard.Relayed(r)
}

// onlyFromHere hides what only the developer may see.
func onlyFromHere(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fromHere(r) {
			writeJSON(w, http.StatusNotFound, errNotFound)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// attackResult is what became of one attempt of an attack.
type attackResult struct {
	Number     int    `json:"number"`
	From       string `json:"from"`
	Status     int    `json:"status"`
	RetryAfter string `json:"retry_after,omitempty"`
}

// attack: POST /dev/attack {from: "one" or "many"} sends ten wrong passwords
// for the demo account through the service's own front door, from addresses
// that documentation uses, so that the developer's own stays unspent.
func (s *Service) attack(w http.ResponseWriter, r *http.Request) {
	in, err := fields.Read(w, r, "from")
	if err == nil && in["from"] != "one" && in["from"] != "many" {
		err = &fields.Error{Status: http.StatusBadRequest, Detail: "from must be one or many"}
	}
	if err != nil {
		s.refuse(w, r, malformed(err), pages.Home, pages.View{})
		return
	}
	results := make([]attackResult, 10)
	for i := range results {
		last := byte(1)
		if in["from"] == "many" {
			last += byte(i)
		}
		results[i] = s.guess(r, i+1, netip.AddrFrom4([4]byte{203, 0, 113, last}))
	}
	if wantsHTML(r) {
		s.render(w, r, http.StatusOK, pages.Attack, pages.View{Data: results})
		return
	}
	writeJSON(w, http.StatusOK, results)
}

// guess sends one wrong password.
func (s *Service) guess(r *http.Request, n int, from netip.Addr) attackResult {
	body, _ := json.Marshal(map[string]string{"email": DemoEmail, "password": fmt.Sprintf("wrong password %d", n)})
	login, err := http.NewRequestWithContext(r.Context(), http.MethodPost, "/login", bytes.NewReader(body))
	if err != nil {
		panic(err) // a constant URL
	}
	login.Host = r.Host
	login.RemoteAddr = netip.AddrPortFrom(from, 1024).String()
	login.Header.Set("Content-Type", "application/json")
	answer := &statusOnly{header: make(http.Header)}
	s.ServeHTTP(answer, login)
	return attackResult{Number: n, From: from.String(), Status: answer.status, RetryAfter: answer.header.Get("Retry-After")}
}

// statusOnly is a ResponseWriter that forgets bodies.
type statusOnly struct {
	header http.Header
	status int
}

func (w *statusOnly) Header() http.Header { return w.header }

func (w *statusOnly) Write(b []byte) (int, error) { return len(b), nil }

func (w *statusOnly) WriteHeader(status int) { w.status = status }
