package authdemo

import (
	"context"
	"errors"
	"net/http"

	"github.com/alexedwards/scs/v2"

	"authguard/authdemo/accounts"
	"authguard/authdemo/password"
	"authguard/authdemo/proofofwork"
	"authguard/authdemo/secondfactor"
	"authguard/guard"
	"authguard/guard/adminapi"
	"authguard/guard/httpguard"
	"authguard/guard/promguard"
)

// A Service is the demo: an http.Handler. Make it with [New] and end it with
// Close.
type Service struct {
	cfg      Config
	guard    *guard.Guard
	edge     *httpguard.Edge
	clients  func(http.Handler) http.Handler // finds out who is asking
	accounts *accounts.Store
	sessions *scs.SessionManager
	hasher   *password.Hasher
	gate     *password.Gate
	codes    *secondfactor.Codes
	mails    *mailRoom
	outbox   *Outbox // nil unless mails stay here
	lately   lately  // of what owners were told
	counters *promguard.Metrics
	reloads  *reloads
	exposed  http.Handler // what is measured
	admin    http.Handler // the operators' API; nil without a token
	handler  http.Handler
}

// New opens the database and builds the service.
func New(ctx context.Context, cfg Config) (*Service, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Service{cfg: cfg}
	if cfg.Mailer == nil {
		s.outbox = new(Outbox)
		s.cfg.Mailer = s.outbox
	}
	if s.counters, err = promguard.New(cfg.Policies); err != nil {
		return nil, err
	}
	s.reloads = newReloads(cfg.Lists, cfg.Now())
	s.exposed = expose(s.counters, s.reloads, cfg.Store)
	if s.guard, err = guard.New(guard.Config{
		Store:          cfg.Store,
		Secret:         cfg.Secret,
		PreviousSecret: cfg.PreviousSecret,
		Policies:       cfg.Policies,
		Lists:          cfg.Lists,
		Resolve:        s.resolve,
		Instances:      cfg.Instances,
		Challenger:     proofofwork.Challenger{},
		Observer:       guard.Observers{newObserver(cfg.Log, cfg.Now), guard.NewOutageLog(cfg.Log, 0, cfg.Now), s.counters},
		Recorder:       cfg.Recorder,
		Now:            cfg.Now,
	}); err != nil {
		return nil, err
	}
	if s.edge, err = httpguard.New(httpguard.Config{Guard: s.guard, Fields: cfg.Fields, Page: s.refusalPage, Log: cfg.Log}); err != nil {
		return nil, err
	}
	if s.clients, err = (httpguard.Clients{TrustedProxies: cfg.TrustedProxies, Log: cfg.Log}).Middleware(); err != nil {
		return nil, err
	}
	if err := checkActions(cfg.Policies); err != nil {
		return nil, err
	}
	if cfg.AdminToken != "" {
		if s.admin, err = adminapi.New(adminapi.Config{Guard: s.guard, Token: cfg.AdminToken}); err != nil {
			return nil, err
		}
	}
	if s.hasher, err = password.NewHasher(cfg.Password); err != nil {
		return nil, err
	}
	if s.gate, err = password.NewGate(cfg.Gate); err != nil {
		return nil, err
	}
	if s.codes, err = secondfactor.New(cfg.Secret, cfg.PreviousSecret); err != nil {
		return nil, err
	}
	if s.accounts, err = accounts.Open(ctx, cfg.DB, cfg.Now); err != nil {
		return nil, err
	}
	prepare := s.refuseSeed
	if cfg.Development {
		prepare = s.seed
	}
	if err := prepare(ctx); err != nil {
		s.accounts.Close()
		return nil, err
	}
	if u := cfg.PublicURL; u != nil && u.Scheme == "http" && !isLoopbackHost(u.Host) {
		cfg.Log.Warn("the public URL is not https: passwords travel in clear, and browsers cannot prove where a form comes from and are refused")
	}
	s.sessions = newSessions(s.accounts, s.secure())
	s.mails = newMailRoom(cfg.Log)
	s.handler = s.routes()
	return s, nil
}

// ServeHTTP answers a request.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Close sends the mails that are under way, as long as ctx permits, and closes
// the database. No request may be running any more.
func (s *Service) Close(ctx context.Context) error {
	return errors.Join(s.mails.close(ctx), s.accounts.Close())
}

// Hasher is what computes the service's passwords.
func (s *Service) Hasher() *password.Hasher { return s.hasher }

// secure tells that browsers come over TLS.
func (s *Service) secure() bool { return s.cfg.PublicURL != nil && s.cfg.PublicURL.Scheme == "https" }
