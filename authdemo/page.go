package authdemo

import (
	"context"
	"errors"
	"net/http"

	"authguard/authdemo/accounts"
	"authguard/authdemo/pages"
)

// A notice tells the next page what was done. It travels in the query string,
// so it is a word with a fixed text and never a text itself.
type notice string

const (
	noticeSignup    notice = "signup"
	noticeConfirmed notice = "confirmed"
	noticeReset     notice = "reset"
	noticePassword  notice = "password"
	noticeFactorOn  notice = "second_factor_on"
	noticeFactorOff notice = "second_factor_off"
	noticeDevices   notice = "devices"
	noticeLogout    notice = "logout"
)

var notices = map[notice]string{
	noticeSignup:    "Look into your mailbox: a mail there says how to go on. Its link is good for 24 hours.",
	noticeConfirmed: "Your account is open. Log in with the password that you chose.",
	noticeReset:     "If the address has an account, a link is on its way. It is good for 24 hours.",
	noticePassword:  "Your new password is set. All other sessions have ended, and no other device is known any more; API keys stay valid.",
	noticeFactorOn:  "The second factor is on. From now on a login asks for a code.",
	noticeFactorOff: "The second factor is off. The password alone logs in.",
	noticeDevices:   "Done. A login from a device that is no longer known is limited like a stranger's.",
	noticeLogout:    "You are logged out.",
}

// page shows a page that needs no session, with the token of a mailed link.
func (s *Service) page(p pages.Page) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		s.render(w, r, http.StatusOK, p, pages.View{Notice: notices[notice(q.Get("notice"))], Token: q.Get("token")})
	}
}

// accountPage shows who is logged in.
func (s *Service) accountPage(w http.ResponseWriter, r *http.Request) {
	a, err := s.current(r.Context())
	if errors.Is(err, errNobody) {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	if err != nil {
		s.refuse(w, r, err, pages.Error, pages.View{})
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), userKey{}, a))
	s.render(w, r, http.StatusOK, pages.Account, pages.View{Notice: notices[notice(r.URL.Query().Get("notice"))]})
}

func (s *Service) render(w http.ResponseWriter, r *http.Request, status int, p pages.Page, v pages.View) {
	v.Development = s.cfg.Development
	if p == pages.Account {
		v.Data = s.devices(r)
	}
	if v.User == "" {
		v.User = s.visitor(r)
	}
	if a, ok := r.Context().Value(userKey{}).(accounts.Account); ok && p == pages.Account {
		v.Factor = s.factorView(r, a.ID, v.Factor)
	}
	if p == pages.Login {
		w.Header().Set("Content-Security-Policy", scriptPolicy)
	}
	if err := pages.Render(w, status, p, v); err != nil {
		s.cfg.Log.ErrorContext(r.Context(), "page cannot be drawn", "err", err)
		http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	}
}

// visitor is the address of whoever is logged in, for the page's frame. If that
// cannot be found out, the page is drawn as for everybody.
func (s *Service) visitor(r *http.Request) string {
	if a, ok := r.Context().Value(userKey{}).(accounts.Account); ok {
		return a.Email
	}
	cookie, err := r.Cookie(s.sessions.Cookie.Name)
	if err != nil {
		return ""
	}
	ctx, err := s.sessions.Load(r.Context(), cookie.Value)
	if err == nil {
		var a accounts.Account
		if a, err = s.current(ctx); err == nil {
			return a.Email
		}
	}
	if !errors.Is(err, errNobody) {
		s.logFault(r, "session not looked up", err)
	}
	return ""
}
