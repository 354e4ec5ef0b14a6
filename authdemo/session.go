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

const sessionLifetime = 24 * time.Hour

// What a session holds: an account's id and the generation that it was opened
// in. No name, so that the table of sessions is no list of who is logged in.
const (
	sessionAccount    = "account"
	sessionGeneration = "generation"
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
	if err := s.sessions.RenewToken(ctx); err != nil {
		return err
	}
	s.sessions.Put(ctx, sessionAccount, a.ID)
	s.sessions.Put(ctx, sessionGeneration, a.Generation)
	return nil
}

// current is the account whose session it is, or errNobody.
func (s *Service) current(ctx context.Context) (accounts.Account, error) {
	id := s.sessions.GetInt64(ctx, sessionAccount)
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

type userKey struct{}

// asUser lets only those through who are logged in.
func (s *Service) asUser(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		a, err := s.current(r.Context())
		if err != nil {
			s.refuse(w, r, err, pages.Login, pages.View{})
			return
		}
		next(w, r.WithContext(context.WithValue(r.Context(), userKey{}, a)))
	}
}

// user is the account that asUser found.
func user(r *http.Request) accounts.Account {
	return r.Context().Value(userKey{}).(accounts.Account)
}
