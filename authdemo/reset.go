package authdemo

import (
	"context"
	"net/http"

	"authguard/authdemo/accounts"
	"authguard/authdemo/fields"
	"authguard/guard"
)

// passwordReset: POST /password-reset {email}. It is answered without looking
// the address up: neither status nor time tell whether it has an account, or
// whether it had too many mails already.
func (s *Service) passwordReset(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	pass, err := s.guard.Check(r.Context(), guard.Attempt{Action: actReset, Account: in["email"], IP: clientIP(r)})
	if err != nil {
		return err
	}
	pass.Succeed(r.Context()) // a refund that fails is reported to the observer
	if !pass.Silenced() {
		s.mails.enqueue(s.resetMail(s.origin(r), pass.Account))
	}
	s.done(w, r, http.StatusAccepted, checkMail, "/password-reset", noticeReset)
	return nil
}

// resetConfirm: POST /password-reset/confirm {token, password}. It ends all
// sessions and lifts what wrong passwords have cost the account, so an owner
// whom an attacker keeps out gets in by way of the mailbox. What the address
// has spent stays spent.
func (s *Service) resetConfirm(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	err := s.redeem(r, actResetConfirm, accounts.ForReset, in, func(ctx context.Context, token, hash string) error {
		a, err := s.accounts.Reset(ctx, token, hash)
		if err != nil {
			return err
		}
		if err := s.guard.Unlock(context.WithoutCancel(ctx), a.Email, actLogin, actReauth); err != nil {
			// The password is set all the same, and the limits age.
			s.cfg.Log.ErrorContext(ctx, "limits of a reset account not lifted", "err", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.done(w, r, http.StatusNoContent, nil, "/login", noticePassword)
	return nil
}
