package authdemo

import (
	"context"
	"errors"
	"net/http"

	"authguard/authdemo/accounts"
	"authguard/authdemo/pages"
	"authguard/authdemo/secondfactor"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/fields"
)

// otp: POST /otp {code}, the second step of a login.
func (s *Service) otp(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	account := awaitedUser(r)
	if err := s.proveFactor(r, account, in["code"], "code"); err != nil {
		if errors.Is(err, accounts.ErrNotFound) {
			err = errNobody // it was turned off meanwhile, so the login begins anew
		}
		if isWrongCode(err) {
			s.warnOwner(r, account.Email, warnCode)
		}
		return err
	}
	return s.finishLogin(w, r, account, s.sessions.PopBool(r.Context(), sessionGuessed))
}

// otpPage: GET /otp.
func (s *Service) otpPage(w http.ResponseWriter, r *http.Request) {
	_, err := s.awaited(r.Context())
	switch {
	case errors.Is(err, errNobody):
		http.Redirect(w, r, "/login", http.StatusSeeOther)
	case err != nil:
		s.refuse(w, r, err, pages.Error, pages.View{})
	default:
		s.page(pages.OTP)(w, r)
	}
}

// proveFactor compares a code with the second factor that account has on, and
// uses it up. The attempt is charged to the account that the session knows, and
// before the code is looked at. So nothing that the request names, no new login
// and no other address brings a further guess, and while the account is refused a
// right code looks like a wrong one. field is where the code was typed.
func (s *Service) proveFactor(r *http.Request, account accounts.Account, typed, field string) error {
	attempt := guard.Attempt{Action: actOTP, Account: account.Email, IP: httpguard.ClientIP(r)}
	ok, err := s.guard.Do(r.Context(), attempt, func(ctx context.Context, _ *guard.Pass) (bool, error) {
		f, err := s.accounts.Factor(ctx, account.ID)
		if err != nil {
			return false, err
		}
		return s.useCode(ctx, f, secondfactor.Clean(typed))
	})
	if err == nil && !ok {
		err = wrongCode(field)
	}
	return err
}

// useCode compares a code of either kind, and takes it if it is right: of two
// that come at once with one code, the database lets one have it.
func (s *Service) useCode(ctx context.Context, f accounts.Factor, code string) (bool, error) {
	if !secondfactor.IsTimed(code) {
		return unused(s.accounts.UseRecoveryCode(ctx, f.Account, s.codes.RecoverySum(code)))
	}
	step, ok, err := s.codes.Step(f.Account, f.AppKey, code, s.cfg.Now())
	if !ok {
		return false, err
	}
	ok, err = unused(s.accounts.UseStep(ctx, f, step))
	if resealed, old := s.codes.Reseal(f.Account, f.AppKey); ok && old {
		if err := s.accounts.ResealFactor(ctx, f, resealed); err != nil { // at the next code, then
			s.cfg.Log.ErrorContext(ctx, "second factor not sealed under the new secret", "err", err)
		}
	}
	return ok, err
}

// unused tells a code that was used before, which counts as a failure, from a
// fault of ours.
func unused(err error) (bool, error) {
	if errors.Is(err, accounts.ErrUsed) {
		return false, nil
	}
	return err == nil, err
}

func wrongCode(field string) error {
	return &problem{Status: http.StatusUnauthorized, Code: invalidCode, text: "The code is wrong, too old or used.", field: field}
}

const invalidCode = "invalid_code"

func isWrongCode(err error) bool {
	var p *problem
	return errors.As(err, &p) && p.Code == invalidCode
}
