package authdemo

import (
	"context"
	"errors"
	"net/http"

	"authguard/authdemo/accounts"
	"authguard/authdemo/password"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/fields"
)

// changePassword: POST /account/password {current, new}. A session is no proof
// of the password, so the current one is compared, under limits of its own.
func (s *Service) changePassword(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	account := user(r)
	if err := password.Acceptable(in["new"], account.Email); err != nil {
		return invalid("weak_password", "new", err)
	}
	var hash string
	err := s.provePassword(r, account, in["current"], "current", func() { hash = s.hasher.Hash(in["new"]) })
	if err != nil {
		return err
	}
	account, err = s.accounts.ChangePassword(r.Context(), account, hash)
	if errors.Is(err, accounts.ErrNotFound) {
		return errNobody // another change came first, and ended this session
	}
	if err != nil {
		return err
	}
	// The change has used up all reset links, so there must be mails for new ones.
	if err := s.guard.Unlock(context.WithoutCancel(r.Context()), account.Email, actReset); err != nil {
		s.cfg.Log.ErrorContext(r.Context(), "limit of reset mails not lifted", "err", err)
	}
	if err := s.signIn(r.Context(), account); err != nil { // all others have ended
		return err
	}
	s.trustDevice(w, r, account)
	s.warnOwner(r, account.Email, warnPassword)
	s.done(w, r, http.StatusNoContent, nil, "/account", noticePassword)
	return nil
}

// provePassword compares the password of somebody who is logged in, under limits
// of its own, and calls then, if any, while there is room to compute another hash.
// field is where the password was typed.
func (s *Service) provePassword(r *http.Request, account accounts.Account, typed, field string, then func()) error {
	attempt := guard.Attempt{Action: actReauth, Account: account.Email, IP: httpguard.ClientIP(r), Device: s.device(r)}
	ok, err := s.guard.Do(r.Context(), attempt, func(ctx context.Context, pass *guard.Pass) (bool, error) {
		leave, err := s.enterGate(ctx, attempt.IP, pass)
		if err != nil {
			return false, err
		}
		defer leave()
		ok, err := s.hasher.Verify(typed, account.PasswordHash)
		if ok && then != nil {
			then()
		}
		return ok, err
	})
	s.warnIfLocked(r, account.Email, err)
	if err == nil && !ok {
		err = &problem{Status: http.StatusUnauthorized, Code: errCredentials.Code, text: "The current password is wrong.", field: field}
	}
	return err
}
