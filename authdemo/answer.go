package authdemo

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

	"authguard/authdemo/pages"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/fields"
)

// A problem is an answer that says no, as an error.
type problem struct {
	Status int    `json:"-"`
	Code   string `json:"error"` // for programs
	Detail string `json:"detail,omitempty"`

	// text is for people who see the page, if Detail does not say it, and field
	// is the one in its form that they got wrong.
	text, field string

	// charged is set for what the client got wrong before the guard was asked:
	// the attempt is charged to its address all the same.
	charged bool
}

func (p *problem) Error() string { return "authdemo: " + p.Code + ": " + p.Detail }

var (
	errNotFound    = &problem{Status: http.StatusNotFound, Code: "not_found", text: "There is no such page."}
	errMethod      = &problem{Status: http.StatusMethodNotAllowed, Code: "method_not_allowed", text: "This page does not do that."}
	errCredentials = &problem{Status: http.StatusUnauthorized, Code: "invalid_credentials", text: "The e-mail address or the password is wrong."}
	errNobody      = &problem{Status: http.StatusUnauthorized, Code: "not_logged_in", text: "Please log in first."}
	errToken       = &problem{Status: http.StatusBadRequest, Code: "invalid_token", text: "This link is used up, expired or incomplete. Ask for another one."}
	errTooManyKeys = &problem{Status: http.StatusConflict, Code: "too_many_keys", Detail: "an account may have five API keys"}
	errCrossOrigin = &problem{Status: http.StatusForbidden, Code: "cross_origin", Detail: "the request comes from another site"}
	errHost        = &problem{Status: http.StatusMisdirectedRequest, Code: "wrong_host", Detail: "this service is not reached under that name"}
)

// invalid is a problem of what was sent in a field.
func invalid(code, field string, reason error) error {
	return &problem{Status: http.StatusBadRequest, Code: code, Detail: reason.Error(), field: field, charged: true}
}

// form is the handler of a route to which a form may be posted. It reads the
// named fields and answers what do returns: nil if it has answered itself.
func (s *Service) form(action string, page pages.Page, do func(http.ResponseWriter, *http.Request, fields.Values) error, names ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		in, err := fields.Read(w, r, names...)
		if err != nil {
			err = malformed(err)
		} else {
			err = do(w, r, in)
		}
		if err == nil {
			return
		}
		if p := (*problem)(nil); errors.As(err, &p) && p.charged {
			if refused := s.chargeAddress(r, action); refused != nil {
				err = refused
			}
		}
		s.refuse(w, r, err, page, pages.View{Email: in["email"], Token: in["token"]})
	}
}

// malformed is the answer to a body that could not be read.
func malformed(err error) error {
	p := &problem{Status: http.StatusBadRequest, Code: "invalid_request", Detail: "the body ended early", charged: true}
	if e := (*fields.Error)(nil); errors.As(err, &e) {
		p.Status, p.Detail = e.Status, e.Detail
	}
	return p
}

// chargeAddress counts an attempt that was none against the client's address.
func (s *Service) chargeAddress(r *http.Request, action string) error {
	ctx := context.WithoutCancel(r.Context()) // a body that ends early is often a client that is gone
	pass, err := s.guard.Check(ctx, guard.Attempt{Action: action, IP: httpguard.ClientIP(r)})
	if errors.Is(err, guard.ErrNoAccount) {
		return nil // the action is counted by account only
	}
	if err != nil {
		return err
	}
	return pass.Fail(ctx)
}

// refuse answers err, as JSON or, to a browser, on the page where it happened.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, err error, page pages.Page, v pages.View) {
	if p := (*problem)(nil); errors.As(err, &p) {
		if !wantsHTML(r) {
			writeJSON(w, p.Status, p)
			return
		}
		v.Alert, v.Invalid = pages.Sentence(p.text+p.Detail), p.field
		s.render(w, r, p.Status, page, v)
		return
	}
	// Limits, a full gate, or a fault of ours.
	s.logFault(r, "request failed", err)
	factor := lockedFactor(err)
	if !wantsHTML(r) && !factor {
		httpguard.Refuse(w, r, err)
		return
	}
	p := httpguard.SetHeaders(w.Header(), err)
	if factor {
		p.Detail = "Waiting does not help, nor does a password reset. Whoever runs this service can open the account."
	}
	if !wantsHTML(r) {
		w.Header().Set("Content-Type", "application/problem+json")
		writeBody(w, p.Status, p)
		return
	}
	if c := p.Challenge; c != nil {
		v.Challenge = &pages.Challenge{Token: c.Token, Bits: c.Params["bits"]}
	}
	title := p.Title
	if page == pages.Login && p.Status == http.StatusTooManyRequests {
		v.OfferReset = p.Challenge == nil
		switch p.Error {
		case "rate_limited":
			title += " at this account or from this address, perhaps by somebody else"
		case "challenge_required":
			title = "Too many wrong passwords come from this address, or from everywhere"
		}
	}
	v.Alert = strings.TrimSpace(title + ". " + p.Detail)
	s.render(w, r, p.Status, page, v)
}

// lockedFactor reports that err is the lock of a second factor, which is the one
// that no password reset opens.
func lockedFactor(err error) bool {
	denied := (*guard.Denied)(nil)
	return errors.As(err, &denied) && denied.Locked && denied.Action == actOTP
}

// refusalPage draws what the guard's middleware refuses.
func (s *Service) refusalPage(w http.ResponseWriter, r *http.Request, p httpguard.Problem) {
	s.render(w, r, p.Status, pages.Error, pages.View{Alert: strings.TrimSpace(p.Title + ". " + p.Detail)})
}

// logFault logs err if it is a fault of ours. What the guard refuses, or cannot
// say, its observer logs.
func (s *Service) logFault(r *http.Request, msg string, err error) {
	if httpguard.ProblemOf(err).Status == http.StatusInternalServerError && !errors.Is(err, context.Canceled) {
		s.cfg.Log.ErrorContext(r.Context(), msg, "err", err)
	}
}

// failing always answers err.
func (s *Service) failing(err error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { s.refuse(w, r, err, pages.Error, pages.View{}) }
}

// wrongMethod answers where routes has the path, but not for this method.
func (s *Service) wrongMethod(routes chi.Routes) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPost} {
			lookup := strings.Replace(method, http.MethodHead, http.MethodGet, 1) // HEAD goes where GET does
			if routes.Match(chi.NewRouteContext(), lookup, r.URL.Path) {
				w.Header().Add("Allow", method)
			}
		}
		s.refuse(w, r, errMethod, pages.Error, pages.View{})
	}
}

// wantsHTML reports whether the client would rather have a page than JSON: a
// browser. Clients that take anything get JSON.
func wantsHTML(r *http.Request) bool { return httpguard.Prefers(r, "text/html", "application/json") }

// done answers a success: a browser is sent to a page with a notice, others get
// the status and, if there is one, the body.
func (s *Service) done(w http.ResponseWriter, r *http.Request, status int, body any, page string, n notice) {
	switch {
	case wantsHTML(r):
		if n != "" {
			page += "?notice=" + string(n)
		}
		http.Redirect(w, r, page, http.StatusSeeOther)
	case body == nil:
		w.WriteHeader(status)
	default:
		writeJSON(w, status, body)
	}
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	writeBody(w, status, v)
}

func writeBody(w http.ResponseWriter, status int, v any) {
	body, _ := json.Marshal(v) // plain structs and maps of strings: never fails
	w.WriteHeader(status)
	w.Write(append(body, '\n'))
}
