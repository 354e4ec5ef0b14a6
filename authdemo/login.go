package authdemo

import (
	"context"
	"errors"
	"net/http"
	"net/netip"

	"authguard/authdemo/accounts"
	"authguard/authdemo/pages"
	"authguard/authdemo/password"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/fields"
)

// login: POST /login {email, password, challenge?}. The right password settles the attempt as
// a success although a code may still be owed: the limits here bound guesses at the
// password, and those at the code are counted by otp.
func (s *Service) login(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	var account accounts.Account
	guessed := false
	attempt := guard.Attempt{Action: actLogin, Account: in["email"], IP: httpguard.ClientIP(r), Device: s.device(r), Challenge: in["challenge"]}
	ok, err := s.guard.Do(r.Context(), attempt, func(ctx context.Context, pass *guard.Pass) (bool, error) {
		leave, err := s.enterGate(ctx, attempt.IP, pass)
		if err != nil {
			return false, err
		}
		defer leave()
		guessed = followsFailures(pass)
		// An unknown account has no hash, which costs as much to compare.
		account, err = s.accounts.ByEmail(ctx, pass.Account)
		if err != nil && !errors.Is(err, accounts.ErrNotFound) {
			return false, err
		}
		return s.hasher.Verify(in["password"], account.PasswordHash)
	})
	if err != nil {
		s.warnIfLocked(r, in["email"], err)
		return err
	}
	if !ok {
		return errCredentials
	}
	// Not before the password was right: until then nothing tells that there is one.
	switch _, err := s.accounts.Factor(r.Context(), account.ID); {
	case errors.Is(err, accounts.ErrNotFound):
		return s.finishLogin(w, r, account, guessed)
	case err != nil:
		return err
	}
	if err := s.awaitCode(r.Context(), account, guessed); err != nil {
		return err
	}
	s.done(w, r, http.StatusOK, map[string]string{"next": "otp"}, "/otp", "")
	return nil
}

// finishLogin is the end of every login: the last factor was right. guessed tells
// that this browser is new, and its login came after many that failed.
func (s *Service) finishLogin(w http.ResponseWriter, r *http.Request, account accounts.Account, guessed bool) error {
	if err := s.signIn(r.Context(), account); err != nil {
		return err
	}
	if guessed {
		s.warnOwner(r, account.Email, warnNewDevice)
	}
	s.trustDevice(w, r, account)
	s.done(w, r, http.StatusOK, map[string]string{"email": account.Email}, "/account", "")
	return nil
}

// enterGate waits for the turn to compute a password: known devices go first.
func (s *Service) enterGate(ctx context.Context, addr netip.Addr, pass *guard.Pass) (leave func(), err error) {
	leave, err = s.gate.Enter(ctx, password.Client{Addr: addr, Trusted: pass.Trusted()})
	if errors.Is(err, password.ErrFull) {
		err = guard.ErrBusy // gives the account its charge back, but not the address
	}
	return leave, err
}

// logout: POST /logout.
func (s *Service) logout(w http.ResponseWriter, r *http.Request) {
	if err := s.sessions.Destroy(r.Context()); err != nil {
		s.refuse(w, r, err, pages.Error, pages.View{})
		return
	}
	s.done(w, r, http.StatusNoContent, nil, "/login", noticeLogout)
}

// me: GET /me.
func (s *Service) me(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"email": user(r).Email})
}
