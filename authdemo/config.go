package authdemo

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"runtime"
	"time"

	"authguard/authdemo/password"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter"
)

// Config is what a Service is made of.
type Config struct {
	// DB is the path of the SQLite file, which is made if it is missing.
	DB string

	// Store keeps the limits.
	Store limiter.Store

	// Instances is how many processes share Store; see guard.Config.
	Instances int

	// Secret is the guard's, at least 16 bytes. The keys of second factors are
	// sealed under it, too: with others than it and PreviousSecret they cannot be
	// opened.
	Secret []byte

	// PreviousSecret, if not nil, is the secret before Secret, while it is being
	// replaced; see guard.Config. The keys of second factors that it has sealed
	// are sealed anew at their next right code.
	PreviousSecret []byte

	// Policies must name all the actions that the service guards; usually
	// they are policies.Default with overrides. Service.Reload replaces them.
	Policies []guard.Policy

	// PublicURL is what browsers see: it decides the links in mails, the one
	// Host that is answered and, if it is https, that cookies are Secure.
	// Required outside development mode.
	PublicURL *url.URL

	// Development is for a listener on loopback and nothing else. It makes the
	// demo account anew at each start, keeps mails in an outbox page instead
	// of sending them, and answers any loopback Host. It excludes PublicURL.
	Development bool

	// Mailer sends mail. Nil in development mode means the outbox; otherwise
	// it is required.
	Mailer Mailer

	// TrustedProxies are the peers whose X-Forwarded-For is believed. Empty
	// means that clients connect directly.
	TrustedProxies []netip.Prefix

	// Fields is the dialect of the fields that tell API clients their limits.
	Fields httpguard.Dialect

	// Lists name whom the guard denies or allows whatever it has counted.
	Lists guard.Lists

	// AdminToken is the operators', at least 16 bytes: it opens the API under /admin,
	// and /metrics to clients on other machines. Empty means that there is no API and
	// that /metrics opens to none.
	AdminToken string

	// Password is what a new hash costs; the zero value means password.Default.
	Password password.Params

	// Gate bounds the computations of passwords; the zero value means as many
	// at once as there are processors, and 64 waiting at most 2 s, of them 32
	// from one address.
	Gate password.GateConfig

	// Recorder, if not nil, is told of every attempt; see guard.Config. It is not closed.
	Recorder guard.Recorder

	// Log takes the service's log; nil means slog.Default. No name, address,
	// password or token is ever written to it.
	Log *slog.Logger

	// Now is the clock of everything that expires; nil means time.Now.
	Now func() time.Time
}

// withDefaults fills in what was left out and reports what cannot be.
func (c Config) withDefaults() (Config, error) {
	switch {
	case c.DB == "":
		return c, errors.New("authdemo: Config.DB is empty")
	case c.Development && c.PublicURL != nil:
		return c, errors.New("authdemo: Config.Development excludes PublicURL")
	case !c.Development && c.PublicURL == nil:
		return c, errors.New("authdemo: Config.PublicURL is required outside development mode")
	case !c.Development && c.Mailer == nil:
		return c, errors.New("authdemo: the service needs a mail transport (Config.Mailer) outside development mode")
	}
	if u := c.PublicURL; u != nil {
		if (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil ||
			(u.Path != "" && u.Path != "/") || u.RawQuery != "" || u.Fragment != "" {
			return c, fmt.Errorf("authdemo: Config.PublicURL is %q, want scheme and host only, such as https://login.example.com", u.Redacted())
		}
	}
	if n := len(c.AdminToken); n > 0 && n < minAdminToken {
		return c, fmt.Errorf("authdemo: Config.AdminToken has %d bytes, want at least %d", n, minAdminToken)
	}
	if c.Password == (password.Params{}) {
		c.Password = password.Default()
	}
	if c.Gate == (password.GateConfig{}) {
		c.Gate = password.GateConfig{Slots: runtime.GOMAXPROCS(0), Waiting: 64, PerAddress: 32, MaxWait: 2 * time.Second}
	}
	if c.Log == nil {
		c.Log = slog.Default()
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return c, nil
}
