package authdemo

import (
	"context"
	"net/http"

	"authguard/authdemo/accounts"
	"authguard/authdemo/pages"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/fields"
)

// passwordReset: POST /password-reset {email}. It is answered without looking
// the address up: neither status nor time tell whether it has an account, or
// whether it had too many mails already.
func (s *Service) passwordReset(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	pass, err := s.guard.Check(r.Context(), guard.Attempt{Action: actReset, Account: in["email"], IP: httpguard.ClientIP(r)})
	if err != nil {
		return err
	}
	if pass.Silenced() || s.mails.enqueue(s.resetMail(s.origin(r), pass.Account)) {
		pass.Succeed(r.Context()) // a refund that fails is reported to the observer
	} else {
		pass.Shed(r.Context()) // no mail leaves: the owner's mails are not spent
	}
	s.done(w, r, http.StatusAccepted, checkMail, "/password-reset", noticeReset)
	return nil
}

// resetLink: GET /password-reset/confirm?token=…, the link of a mail. Whatever
// becomes of the token, the page is the same, and the token stays good: scanners
// open the links in mails, too.
func (s *Service) resetLink(w http.ResponseWriter, r *http.Request) {
	if token := r.URL.Query().Get("token"); token != "" {
		s.trustReader(w, r, token)
	}
	s.page(pages.ResetConfirm)(w, r)
}

// trustReader makes the browser of somebody who opens a link from an account's
// mailbox a device of the account: an owner whose account is locked by others can
// log in from there with the password as it is. Nothing that was counted is lifted.
// So a scanner that opens links, which anybody can have mailed, gives a guesser
// nothing; only resetConfirm lifts what was counted, since no scanner chooses a
// password.
//
// A token that is wrong, or refused for what its address has tried before, earns
// nothing.
func (s *Service) trustReader(w http.ResponseWriter, r *http.Request, token string) {
	var account accounts.Account
	ok, err := s.guard.Do(r.Context(), guard.Attempt{Action: actResetConfirm, IP: httpguard.ClientIP(r)},
		func(ctx context.Context, _ *guard.Pass) (ok bool, err error) {
			email, err := s.accounts.TokenEmail(ctx, accounts.ForReset, token)
			if err == nil {
				account, err = s.accounts.ByEmail(ctx, email)
			}
			return fits(err)
		})
	if err != nil {
		s.logFault(r, "reset link not looked up", err)
	}
	if ok {
		s.trustDevice(w, r, account)
	}
}

// resetConfirm: POST /password-reset/confirm {token, password}. It ends all
// sessions and devices, makes this browser a device, and lifts what wrong passwords
// have cost the account, on known devices too, so an owner whom an attacker keeps
// out gets in by way of the mailbox. What the address has spent stays spent.
func (s *Service) resetConfirm(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	var account accounts.Account
	err := s.redeem(r, actResetConfirm, accounts.ForReset, in, func(ctx context.Context, token, hash string) (err error) {
		if account, err = s.accounts.Reset(ctx, token, hash); err != nil {
			return err
		}
		// The mails' limit goes, too: the reset has used up all links, and a
		// limit that is reached must mean that one lies in the mailbox.
		if err := s.guard.Unlock(context.WithoutCancel(ctx), account.Email, actLogin, actReauth, actReset); err != nil {
			// The password is set all the same, and the limits age.
			s.cfg.Log.ErrorContext(ctx, "limits of a reset account not lifted", "err", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	s.trustDevice(w, r, account)
	s.warnOwner(r, account.Email, warnPassword)
	s.done(w, r, http.StatusNoContent, nil, "/login", noticePassword)
	return nil
}
