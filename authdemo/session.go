package authdemo

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/alexedwards/scs/v2"

	"authguard/authdemo/accounts"
	"authguard/authdemo/pages"
)

const (
	sessionLifetime = 24 * time.Hour
	awaitedLifetime = 5 * time.Minute // of a session that awaits a code
)

// What a session holds: an account's id and the generation that it was opened
// in. No name, so that the table of sessions is no list of who is logged in.
// The id is under one of two keys, so that what asks for an account that is
// logged in never finds one that awaits a code.
const (
	sessionAccount    = "account"
	sessionAwaited    = "awaited" // its password was right, and a code is owed
	sessionGeneration = "generation"
	sessionGuessed    = "guessed" // of one that awaits a code: see finishLogin
)

func newSessions(store *accounts.Store, secure bool) *scs.SessionManager {
	m := scs.New()
	m.Store = accounts.Sessions{Store: store}
	m.HashTokenInStore = true
	m.Lifetime = sessionLifetime
	m.Cookie.Name = "authdemo_session"
	m.Cookie.HttpOnly = true
	m.Cookie.SameSite = http.SameSiteLaxMode
	if secure {
		m.Cookie.Secure = true
		m.Cookie.Name = "__Host-" + m.Cookie.Name
	}
	return m
}

// signIn opens a session of the account under a new token, so that a token
// which somebody planted before is worth nothing.
func (s *Service) signIn(ctx context.Context, a accounts.Account) error {
	s.sessions.Remove(ctx, sessionAwaited)
	return s.open(ctx, sessionAccount, a)
}

// awaitCode opens a session that is good for sending the code of a second factor,
// for five minutes and nothing else. It takes the place of whatever session there
// was.
func (s *Service) awaitCode(ctx context.Context, a accounts.Account, guessed bool) error {
	s.sessions.Remove(ctx, sessionAccount)
	if err := s.open(ctx, sessionAwaited, a); err != nil {
		return err
	}
	s.sessions.Put(ctx, sessionGuessed, guessed)
	s.sessions.SetDeadline(ctx, time.Now().Add(awaitedLifetime)) // as the manager dates; see accounts.Sessions
	return nil
}

func (s *Service) open(ctx context.Context, key string, a accounts.Account) error {
	if err := s.sessions.RenewToken(ctx); err != nil {
		return err
	}
	s.sessions.Put(ctx, key, a.ID)
	s.sessions.Put(ctx, sessionGeneration, a.Generation)
	return nil
}

// current is the account that is logged in, or errNobody.
func (s *Service) current(ctx context.Context) (accounts.Account, error) {
	return s.inSession(ctx, sessionAccount)
}

// awaited is the account that a code is owed for, or errNobody.
func (s *Service) awaited(ctx context.Context) (accounts.Account, error) {
	return s.inSession(ctx, sessionAwaited)
}

func (s *Service) inSession(ctx context.Context, key string) (accounts.Account, error) {
	id := s.sessions.GetInt64(ctx, key)
	if id == 0 {
		return accounts.Account{}, errNobody
	}
	a, err := s.accounts.ByID(ctx, id)
	if errors.Is(err, accounts.ErrNotFound) {
		return accounts.Account{}, errNobody
	}
	if err != nil {
		return accounts.Account{}, err
	}
	if a.Generation != s.sessions.GetInt64(ctx, sessionGeneration) {
		return accounts.Account{}, errNobody // the password was changed since
	}
	return a, nil
}

type (
	userKey    struct{}
	awaitedKey struct{}
)

// asUser lets only those through who are logged in.
func (s *Service) asUser(next http.HandlerFunc) http.HandlerFunc {
	return s.as(userKey{}, s.current, next)
}

// asAwaited lets only those through whose code is awaited.
func (s *Service) asAwaited(next http.HandlerFunc) http.HandlerFunc {
	return s.as(awaitedKey{}, s.awaited, next)
}

func (s *Service) as(key any, who func(context.Context) (accounts.Account, error), next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := who(r.Context())
		if err != nil {
			s.refuse(w, r, err, pages.Login, pages.View{})
			return
		}
		next(w, r.WithContext(context.WithValue(r.Context(), key, a)))
	}
}

// user is the account that asUser found.
func user(r *http.Request) accounts.Account {
	return r.Context().Value(userKey{}).(accounts.Account)
}

// awaitedUser is the account that asAwaited found. It is logged in nowhere yet.
func awaitedUser(r *http.Request) accounts.Account {
	return r.Context().Value(awaitedKey{}).(accounts.Account)
}
