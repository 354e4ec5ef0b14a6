package authdemo

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"authguard/authdemo/accounts"
)

// signupMail tells the owner of an address that somebody signed up with it:
// either how to open the account, or that there is one.
func (s *Service) signupMail(origin, email string) func(context.Context) error {
	return func(ctx context.Context) error {
		_, err := s.accounts.ByEmail(ctx, email)
		if err == nil {
			if err := s.accounts.PretendToken(ctx, accounts.ForConfirm); err != nil {
				return err
			}
			link := origin + "/password-reset"
			return s.sendMail(ctx, Mail{
				To: email, Subject: "You have an account already", Link: link,
				Text: "Somebody, probably you, tried to register this address. It has an account already.\n\n" +
					"If you forgot the password, set a new one:\n" + link + "\n\nOtherwise there is nothing to do.\n",
			})
		}
		if !errors.Is(err, accounts.ErrNotFound) {
			return err
		}
		link, err := s.mailedLink(ctx, origin+"/register/confirm", accounts.ForConfirm, email)
		if err != nil {
			return err
		}
		return s.sendMail(ctx, Mail{
			To: email, Subject: "Confirm your address", Link: link,
			Text: "Somebody, probably you, registered this address. Open this link within 24 hours to open the account:\n" +
				link + "\n\nIf it was not you, there is nothing to do.\n",
		})
	}
}

// resetMail sends a reset link to the address as it is stored, if it is. What
// was typed is never written to.
func (s *Service) resetMail(origin, email string) func(context.Context) error {
	return func(ctx context.Context) error {
		a, err := s.accounts.ByEmail(ctx, email)
		if errors.Is(err, accounts.ErrNotFound) {
			return s.accounts.PretendToken(ctx, accounts.ForReset)
		}
		if err != nil {
			return err
		}
		link, err := s.mailedLink(ctx, origin+"/password-reset/confirm", accounts.ForReset, a.Email)
		if err != nil {
			return err
		}
		return s.sendMail(ctx, Mail{
			To: a.Email, Subject: "Reset your password", Link: link,
			Text: "Somebody, probably you, wants to set a new password for this address. Open this link within 24 hours:\n" +
				link + "\n\nIf it was not you, there is nothing to do: the password stays as it is.\n",
		})
	}
}

func (s *Service) sendMail(ctx context.Context, m Mail) error {
	m.Written = s.cfg.Now()
	return s.cfg.Mailer.Send(ctx, m)
}

func (s *Service) mailedLink(ctx context.Context, page string, purpose accounts.Purpose, email string) (string, error) {
	token, err := s.accounts.NewToken(ctx, purpose, email)
	if err != nil {
		return "", err
	}
	return page + "?" + url.Values{"token": {token}}.Encode(), nil
}

// origin is where links in mails lead. Only in development mode is it taken
// from the request, whose Host was found to be this machine.
func (s *Service) origin(r *http.Request) string {
	if u := s.cfg.PublicURL; u != nil {
		return u.Scheme + "://" + u.Host
	}
	return "http://" + r.Host
}
