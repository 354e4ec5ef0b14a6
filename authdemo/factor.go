package authdemo

import (
	"context"
	"errors"
	"html/template"
	"net/http"

	"authguard/authdemo/accounts"
	"authguard/authdemo/pages"
	"authguard/authdemo/secondfactor"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/fields"
)

// issuer is what an authenticator app calls the service.
const issuer = "authguard demo"

var (
	errFactorOn  = &problem{Status: http.StatusConflict, Code: "second_factor_on", Detail: "the account has a second factor; turn it off first"}
	errFactorOff = &problem{Status: http.StatusConflict, Code: "second_factor_off", Detail: "the account has no second factor"}
	errNotBegun  = &problem{Status: http.StatusConflict, Code: "not_begun", Detail: "no second factor was begun in the last ten minutes; begin again"}
)

// beginFactor: POST /account/otp {current} makes a key for an authenticator app.
// It is shown this once, in the answer itself, and counts once a code of it has
// come back.
func (s *Service) beginFactor(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	account := user(r)
	if err := s.provePassword(r, account, in["current"], "otp_current", nil); err != nil {
		return err
	}
	key, sealed, err := s.codes.NewKey(account.ID, issuer, account.Email)
	if err != nil {
		return err
	}
	err = s.accounts.BeginFactor(r.Context(), account.ID, sealed)
	if errors.Is(err, accounts.ErrFactorOn) {
		return errFactorOn
	}
	if err != nil {
		return err
	}
	if !wantsHTML(r) {
		writeJSON(w, http.StatusCreated, map[string]string{"secret": key.Secret(), "uri": key.URL()})
		return nil
	}
	image, err := secondfactor.QR(key)
	if err != nil {
		return err
	}
	s.render(w, r, http.StatusCreated, pages.Account, pages.View{Factor: pages.Factor{
		Begun: true, Secret: secondfactor.Groups(key.Secret(), " "), QR: template.URL(image), //nolint:gosec // of our own making
	}})
	return nil
}

// confirmFactor: POST /account/otp/confirm {code} turns the second factor on, and
// shows the recovery codes, this once.
func (s *Service) confirmFactor(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	account := user(r)
	var codes []string
	attempt := guard.Attempt{Action: actOTP, Account: account.Email, IP: httpguard.ClientIP(r)}
	ok, err := s.guard.Do(r.Context(), attempt, func(ctx context.Context, _ *guard.Pass) (bool, error) {
		f, err := s.accounts.BegunFactor(ctx, account.ID)
		if err != nil {
			return false, err
		}
		step, ok, err := s.codes.Step(f.Account, f.AppKey, secondfactor.Clean(in["code"]), s.cfg.Now())
		if !ok {
			return false, err
		}
		var sums [][]byte
		codes, sums = secondfactor.NewRecoveryCodes()
		err = s.accounts.ConfirmFactor(ctx, f, step, sums)
		return err == nil, err
	})
	switch {
	case errors.Is(err, accounts.ErrNotFound):
		return errNotBegun
	case err != nil:
		return err
	case !ok:
		return wrongCode("otp_confirm")
	}
	s.warnOwner(r, account.Email, warnFactorOn)
	if wantsHTML(r) {
		s.render(w, r, http.StatusOK, pages.Account, pages.View{Notice: notices[noticeFactorOn], Factor: pages.Factor{RecoveryCodes: codes}})
	} else {
		writeJSON(w, http.StatusOK, map[string][]string{"recovery_codes": codes})
	}
	return nil
}

// removeFactor: POST /account/otp/remove {current, code}. It takes both secrets:
// who has found the session open, or only the password, cannot turn it off.
func (s *Service) removeFactor(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	account := user(r)
	if err := s.provePassword(r, account, in["current"], "otp_current", nil); err != nil {
		return err
	}
	if err := s.proveFactor(r, account, in["code"], "otp_code"); err != nil {
		if errors.Is(err, accounts.ErrNotFound) {
			err = errFactorOff
		}
		return err
	}
	if err := s.accounts.DropFactor(r.Context(), account.ID); err != nil {
		return err
	}
	s.warnOwner(r, account.Email, warnFactorOff)
	s.done(w, r, http.StatusNoContent, nil, "/account", noticeFactorOff)
	return nil
}

// factorView is what the account page says of the second factor, added to what v
// says already. A state that cannot be read is left out.
func (s *Service) factorView(r *http.Request, account int64, v pages.Factor) pages.Factor {
	f, err := s.accounts.Factor(r.Context(), account)
	if err == nil {
		v.On, v.Since, v.Left = true, f.Since.UTC().Format("2 January 2006"), f.Left
		return v
	}
	if !errors.Is(err, accounts.ErrNotFound) {
		s.logFault(r, "second factor not looked up", err)
		return v
	}
	v.Off = true
	_, err = s.accounts.BegunFactor(r.Context(), account)
	v.Begun = err == nil
	return v
}
