package authdemo

import (
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"authguard/authdemo/pages"
	"authguard/guard"
)

// The actions that the service guards. Each needs a policy.
const (
	actLogin        = "login"
	actReauth       = "reauth"
	actOTP          = "otp"
	actReset        = "password_reset"
	actResetConfirm = "reset_confirm"
	actSignup       = "signup"
	actConfirm      = "signup_confirm"
	actAPI          = "api"
	actAPIPro       = "api_pro"
	actNoKey        = "api_unauthenticated"
	actAdmin        = "admin"
)

var actions = []string{actLogin, actReauth, actOTP, actReset, actResetConfirm, actSignup, actConfirm, actAPI, actAPIPro, actNoKey, actAdmin}

// checkActions reports an action without a policy at start, rather than with
// the first request for it.
func checkActions(policies []guard.Policy) error {
	has := make(map[string]bool, len(policies))
	for _, p := range policies {
		has[p.Action] = true
	}
	for _, a := range actions {
		if !has[a] {
			return fmt.Errorf("authdemo: %w: %q", guard.ErrNoPolicy, a)
		}
	}
	return nil
}

func (s *Service) routes() http.Handler {
	r := chi.NewRouter()
	r.Use(s.logRequests, s.recoverPanics, s.securityHeaders, middleware.GetHead)
	r.Get("/healthz", s.healthz)
	r.Get("/readyz", s.readyz)
	for _, name := range []string{"style.css", "login.js", "solver.js"} {
		r.Get("/"+name, pages.File(name))
	}
	r.With(s.clients).Get("/metrics", s.metrics)
	if s.admin != nil {
		r.With(s.clients).Mount("/admin", http.StripPrefix("/admin", s.admin))
	}

	r.Group(func(r chi.Router) {
		r.Use(s.onlyOurHost, s.clients, s.sameOrigin)
		r.NotFound(s.failing(errNotFound))
		r.MethodNotAllowed(s.wrongMethod(r))
		r.Group(func(r chi.Router) {
			r.Use(s.withKey)
			r.With(s.limitKey(1)).Get("/api/quote", quote)
			r.With(s.limitKey(exportCost)).Get("/api/export", export)
		})

		r.Get("/", s.page(pages.Home))
		r.Get("/login", s.page(pages.Login))
		r.Get("/register", s.page(pages.Register))
		r.Get("/register/confirm", s.page(pages.Confirm))
		r.Get("/password-reset", s.page(pages.Reset))
		r.Get("/password-reset/confirm", s.resetLink)
		r.Post("/register", s.form(actSignup, pages.Register, s.register, "email", "password"))
		r.Post("/register/confirm", s.form(actConfirm, pages.Confirm, s.registerConfirm, "token", "password"))
		r.Post("/password-reset", s.form(actReset, pages.Reset, s.passwordReset, "email"))
		r.Post("/password-reset/confirm", s.form(actResetConfirm, pages.ResetConfirm, s.resetConfirm, "token", "password"))

		r.Group(func(r chi.Router) {
			r.Use(s.sessions.LoadAndSave)
			r.Post("/login", s.form(actLogin, pages.Login, s.login, "email", "password", "challenge?"))
			r.Get("/otp", s.otpPage)
			r.Post("/otp", s.asAwaited(s.form(actOTP, pages.OTP, s.otp, "code")))
			r.Post("/logout", s.logout)
			r.Get("/me", s.asUser(s.me))
			r.Get("/account", s.accountPage)
			r.Post("/account/password", s.asUser(s.form(actReauth, pages.Account, s.changePassword, "current", "new")))
			r.Post("/account/otp", s.asUser(s.form(actReauth, pages.Account, s.beginFactor, "current")))
			r.Post("/account/otp/confirm", s.asUser(s.form(actOTP, pages.Account, s.confirmFactor, "code")))
			r.Post("/account/otp/remove", s.asUser(s.form(actReauth, pages.Account, s.removeFactor, "current", "code")))
			r.Post("/account/devices/revoke", s.asUser(s.form(actReauth, pages.Account, s.revokeDevice, "device")))
			r.Post("/api/keys", s.asUser(s.newKey))
		})
		if s.cfg.Development {
			r.Group(func(r chi.Router) {
				r.Use(onlyFromHere)
				r.Get("/dev/outbox", s.showOutbox)
				r.Post("/dev/attack", s.attack)
			})
		}
	})
	return r
}
