package authdemo

import (
	"context"
	"errors"
	"net/http"
	"net/mail"

	"authguard/authdemo/accounts"
	"authguard/authdemo/password"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/fields"
)

// register: POST /register {email, password}. The answer and the work are the
// same whether or not the address has an account: it is looked up afterwards,
// and what there is to say is mailed. The password is checked here to spare
// people a second round, and kept nowhere: the account gets the one that comes
// with the mailed token.
func (s *Service) register(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	email, err := mailAddress(in["email"])
	if err != nil {
		return invalid("invalid_email", "email", err)
	}
	if err := password.Acceptable(in["password"], email); err != nil {
		return invalid("weak_password", "password", err)
	}
	pass, err := s.guard.Check(r.Context(), guard.Attempt{Action: actSignup, Account: email, IP: httpguard.ClientIP(r)})
	if err != nil {
		return err
	}
	pass.Succeed(r.Context()) // a refund that fails is reported to the observer
	if !pass.Silenced() {
		s.mails.enqueue(s.signupMail(s.origin(r), pass.Account))
	}
	s.done(w, r, http.StatusCreated, checkMail, "/register", noticeSignup)
	return nil
}

// checkMail is the answer of whatever goes on by mail.
var checkMail = map[string]string{"next": "check_mail"}

// registerConfirm: POST /register/confirm {token, password}.
func (s *Service) registerConfirm(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	err := s.redeem(r, actConfirm, accounts.ForConfirm, in, func(ctx context.Context, token, hash string) error {
		_, err := s.accounts.Confirm(ctx, token, hash)
		return err
	})
	if err != nil {
		return err
	}
	s.done(w, r, http.StatusNoContent, nil, "/login", noticeConfirmed)
	return nil
}

// redeem compares a mailed token and, if it is good, uses it up with the hash
// of the new password. A password that will not do leaves it as it is.
func (s *Service) redeem(r *http.Request, action string, purpose accounts.Purpose, in fields.Values, use func(ctx context.Context, token, hash string) error) error {
	var weak error
	attempt := guard.Attempt{Action: action, IP: httpguard.ClientIP(r)}
	ok, err := s.guard.Do(r.Context(), attempt, func(ctx context.Context, pass *guard.Pass) (bool, error) {
		// Looked up before the hash is computed, so that wrong tokens cost nothing.
		email, err := s.accounts.TokenEmail(ctx, purpose, in["token"])
		if err != nil {
			return fits(err)
		}
		if weak = password.Acceptable(in["password"], email); weak != nil {
			return false, nil
		}
		leave, err := s.enterGate(ctx, attempt.IP, pass)
		if err != nil {
			return false, err
		}
		defer leave()
		return fits(use(ctx, in["token"], s.hasher.Hash(in["password"])))
	})
	switch {
	case err != nil:
		return err
	case weak != nil:
		return &problem{Status: http.StatusBadRequest, Code: "weak_password", Detail: weak.Error(), field: "password"}
	case !ok:
		return errToken
	}
	return nil
}

// fits tells a wrong token, which counts as a failure, from a fault of ours.
func fits(err error) (bool, error) {
	if errors.Is(err, accounts.ErrInvalidToken) {
		return false, nil
	}
	return err == nil, err
}

var errAddress = errors.New("this is no e-mail address")

// mailAddress is the canonical form of what was typed, if mail can be sent there.
func mailAddress(typed string) (string, error) {
	email, err := guard.Canonical(typed)
	if err != nil || len(email) > 254 {
		return "", errAddress
	}
	// A name, a comment or quotes beside the address would not come back equal.
	if parsed, err := mail.ParseAddress(email); err != nil || parsed.Address != email {
		return "", errAddress
	}
	return email, nil
}
