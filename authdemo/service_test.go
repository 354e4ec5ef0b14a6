package authdemo

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/authdemo/password"
	"authguard/guard"
	"authguard/internal/testkit"
	"authguard/limiter/memstore"
	"authguard/policies"
)

// world is a service with a clock, a log and a mailbox of its own.
type world struct {
	testing.TB
	svc *Service
	box *Outbox
	log *testkit.Buffer

	mu  sync.Mutex
	now time.Time
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

// newWorld is a service at https://login.example.com, changed by change.
func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	w := &world{TB: t, box: new(Outbox), log: new(testkit.Buffer), now: time.Unix(1_800_000_000, 0)}
	cfg := Config{
		DB:        filepath.Join(t.TempDir(), "demo.db"),
		Store:     memstore.New(memstore.Config{Now: w.clock}),
		Secret:    bytes.Repeat([]byte("s"), 32),
		Policies:  policies.Default(),
		PublicURL: &url.URL{Scheme: "https", Host: "login.example.com"},
		Mailer:    w.box,
		Password:  password.Params{MemoryKiB: 8, Passes: 1, Threads: 1},
		Log:       slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Now:       w.clock,
	}
	for _, c := range change {
		c(&cfg)
	}
	var err error
	w.svc, err = New(t.Context(), cfg)
	require.NoError(t, err)
	if w.svc.outbox != nil {
		w.box = w.svc.outbox
	}
	t.Cleanup(func() { assert.NoError(t, w.svc.Close(context.Background())) })
	return w
}

func development(c *Config) {
	c.Development, c.PublicURL, c.Mailer = true, nil, nil
}

// owner has an account in every test that asks for it.
const (
	owner         = "owner@example.com"
	ownerPassword = "the owner's own words"
)

func (w *world) withOwner() *world {
	w.Helper()
	w.restore(owner)
	return w
}

// restore makes an account with the owner's password.
func (w *world) restore(email string) {
	w.Helper()
	require.NoError(w, w.svc.accounts.Restore(w.Context(), email, w.svc.hasher.Hash(ownerPassword)))
}

// client is a browser or a program at one address.
type client struct {
	w       *world
	addr    string
	header  http.Header
	host    string
	cookies map[string]*http.Cookie
}

func (w *world) from(addr string) *client {
	c := &client{w: w, addr: addr, header: http.Header{}, host: "login.example.com", cookies: map[string]*http.Cookie{}}
	if w.svc.cfg.Development {
		c.host = "127.0.0.1:8080"
	}
	return c
}

func (c *client) accepting(media string) *client { c.header.Set("Accept", media); return c }

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

// request is one that c would send.
func (c *client) request(method, path, contentType, body string) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header = c.header.Clone()
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	r.Host = c.host
	r.RemoteAddr = netip.AddrPortFrom(netip.MustParseAddr(c.addr), 40000).String()
	for _, cookie := range c.cookies {
		r.AddCookie(cookie)
	}
	return r
}

func (c *client) send(method, path, contentType, body string) *httptest.ResponseRecorder {
	c.w.Helper()
	r := c.request(method, path, contentType, body)
	before := r.RemoteAddr
	rec := httptest.NewRecorder()
	c.w.svc.ServeHTTP(rec, r)
	assert.Equal(c.w, before, r.RemoteAddr)
	for _, cookie := range rec.Result().Cookies() {
		c.cookies[cookie.Name] = cookie
		if cookie.MaxAge < 0 {
			delete(c.cookies, cookie.Name)
		}
	}
	if rec.Code == http.StatusTooManyRequests {
		assert.NotEmpty(c.w, rec.Header().Get("Retry-After"))
		assert.Equal(c.w, "no-store", rec.Header().Get("Cache-Control"))
	}
	return rec
}

func (c *client) get(path string) *httptest.ResponseRecorder {
	c.w.Helper()
	return c.send(http.MethodGet, path, "", "")
}

// post sends the named fields as JSON: name, value, name, value.
func (c *client) post(path string, nameValue ...string) *httptest.ResponseRecorder {
	c.w.Helper()
	body, err := json.Marshal(pairs(nameValue))
	require.NoError(c.w, err)
	return c.send(http.MethodPost, path, "application/json", string(body))
}

func (c *client) postForm(path string, nameValue ...string) *httptest.ResponseRecorder {
	c.w.Helper()
	form := url.Values{}
	for name, value := range pairs(nameValue) {
		form.Set(name, value)
	}
	return c.send(http.MethodPost, path, "application/x-www-form-urlencoded", form.Encode())
}

func pairs(nameValue []string) map[string]string {
	m := make(map[string]string)
	for i := 0; i < len(nameValue); i += 2 {
		m[nameValue[i]] = nameValue[i+1]
	}
	return m
}

func (c *client) login(email, password string) *httptest.ResponseRecorder {
	c.w.Helper()
	return c.post("/login", "email", email, "password", password)
}

// mails are those to an address, newest first, once all have been sent.
func (w *world) mails(to string) (mails []Mail) {
	w.svc.mails.flush(w.Context())
	for _, m := range w.box.Mails() {
		if m.To == to {
			mails = append(mails, m)
		}
	}
	return mails
}

// links are the mails to an address that have one.
func (w *world) links(to string) []Mail {
	return slices.DeleteFunc(w.mails(to), func(m Mail) bool { return m.Link == "" })
}

// token is the one in the newest link to an address.
func (w *world) token(to string) string {
	w.Helper()
	mails := w.links(to)
	require.NotEmpty(w, mails)
	link, err := url.Parse(mails[0].Link)
	require.NoError(w, err)
	require.NotEmpty(w, link.Query().Get("token"))
	return link.Query().Get("token")
}

func same(t *testing.T, a, b *httptest.ResponseRecorder) {
	t.Helper()
	assert.Equal(t, a.Code, b.Code)
	assert.Equal(t, a.Header(), b.Header())
	assert.Equal(t, a.Body.String(), b.Body.String())
}

func TestNewNamesWhatIsMissing(t *testing.T) {
	good := Config{
		DB: filepath.Join(t.TempDir(), "demo.db"), Store: memstore.New(memstore.Config{}),
		Secret: bytes.Repeat([]byte("s"), 32), Policies: policies.Default(), Development: true,
	}
	for want, change := range map[string]func(*Config){
		"Config.DB":              func(c *Config) { c.DB = "" },
		"Config.Store":           func(c *Config) { c.Store = nil },
		"Config.Secret":          func(c *Config) { c.Secret = nil },
		"Config.Policies":        func(c *Config) { c.Policies = nil },
		"no policy":              func(c *Config) { c.Policies = c.Policies[:1] },
		"excludes PublicURL":     func(c *Config) { c.PublicURL = &url.URL{Scheme: "https", Host: "a.example"} },
		"PublicURL is required":  func(c *Config) { c.Development = false },
		"needs a mail transport": func(c *Config) { c.Development, c.PublicURL = false, &url.URL{Scheme: "https", Host: "a.example"} },
		"want scheme and host": func(c *Config) {
			c.Development, c.PublicURL, c.Mailer = false, &url.URL{Scheme: "https", Host: "a.example", Path: "/x"}, new(Outbox)
		},
		"trusting so many":        func(c *Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("::/0")} },
		"invalid prefix":          func(c *Config) { c.TrustedProxies = []netip.Prefix{{}} },
		"MemoryKiB":               func(c *Config) { c.Password.Passes = 1; c.Password.Threads = 1 },
		"password: Waiting is -1": func(c *Config) { c.Gate = password.GateConfig{Slots: 1, Waiting: -1} },
	} {
		cfg := good
		change(&cfg)
		_, err := New(t.Context(), cfg)
		assert.ErrorContains(t, err, want)
	}
}

func only(action string, rules ...guard.Rule) func(*Config) {
	return func(c *Config) {
		c.Policies = policies.Override(c.Policies, []guard.Policy{{Action: action, Rules: rules}})
	}
}
