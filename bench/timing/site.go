package timing

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"authguard/authdemo"
	"authguard/authdemo/accounts"
	"authguard/limiter/memstore"
	"authguard/policies"
)

// A site is the demo service on loopback, with the limits of the presets, an
// argon2id as it comes, and any number of clients behind one trusted proxy.
type site struct {
	svc     *authdemo.Service
	server  *http.Server
	url     string
	dir     string
	client  *http.Client
	clients uint32 // so far
}

// nowhere takes all mail.
type nowhere struct{}

func (nowhere) Send(context.Context, authdemo.Mail) error { return nil }

func newSite(known []string) (s *site, err error) {
	s = &site{client: &http.Client{Timeout: time.Minute}}
	if s.dir, err = os.MkdirTemp("", "authguard-timing-"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.url = "http://" + ln.Addr().String()
	secret := make([]byte, 32)
	rand.Read(secret)
	ctx, db := context.Background(), filepath.Join(s.dir, "demo.db")
	if s.svc, err = authdemo.New(ctx, authdemo.Config{
		DB: db, Store: memstore.New(memstore.Config{}), Secret: secret, Policies: policies.Default(),
		PublicURL: &url.URL{Scheme: "http", Host: ln.Addr().String()}, Mailer: nowhere{},
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Log: slog.New(slog.DiscardHandler),
	}); err != nil {
		ln.Close()
		return nil, err
	}
	store, err := accounts.Open(ctx, db, time.Now)
	if err != nil {
		ln.Close()
		return nil, err
	}
	defer store.Close()
	hash := s.svc.Hasher().Hash("the owner's own words")
	for _, email := range known {
		if err = store.Restore(ctx, email, hash); err != nil {
			ln.Close()
			return nil, err
		}
	}
	s.server = &http.Server{Handler: s.svc}
	go s.server.Serve(ln)
	return s, nil
}

func (s *site) close() (err error) {
	s.client.CloseIdleConnections()
	if s.server != nil {
		err = s.server.Close()
	}
	if s.svc != nil {
		err = errors.Join(err, s.svc.Close(context.Background()))
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}

// A call is one request and the status that must answer it. An empty body is a GET.
type call struct {
	path, body string
	status     int
}

// timed makes a call, from an address that none came from before, and tells how
// long its whole answer took.
func (s *site) timed(c call) (time.Duration, error) {
	s.clients++
	method := http.MethodPost
	if c.body == "" {
		method = http.MethodGet
	}
	req, err := http.NewRequest(method, s.url+c.path, bytes.NewReader([]byte(c.body)))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Forwarded-For", netip.AddrFrom4([4]byte{10, byte(s.clients >> 16), byte(s.clients >> 8), byte(s.clients)}).String())
	start := time.Now()
	resp, err := s.client.Do(req)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(resp.Body)
	took := time.Since(start)
	resp.Body.Close()
	if err == nil && resp.StatusCode != c.status {
		err = fmt.Errorf("%s %s: %s, want %d: %s", method, c.path, resp.Status, c.status, text)
	}
	return took, err
}
