package pages

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"
)

// A Page names a template.
type Page string

// The pages of the service.
const (
	Home         Page = "home"
	Login        Page = "login"
	OTP          Page = "otp" // asks for the code of a second factor
	Register     Page = "register"
	Confirm      Page = "confirm"       // ends a sign-up; a mailed link opens it
	Reset        Page = "reset"         // asks for a reset link
	ResetConfirm Page = "reset_confirm" // sets a new password; a mailed link opens it
	Account      Page = "account"
	Outbox       Page = "outbox" // development mode: the mails that would have been sent
	Attack       Page = "attack" // development mode: what became of an attack
	Error        Page = "error"  // whatever has no page of its own
)

// A View is what a page shows.
type View struct {
	Development bool
	Notice      string     // good news, told to screen readers as well
	Alert       string     // what went wrong
	OfferReset  bool       // beside Alert: a new password would help
	User        string     // who is logged in
	Email       string     // what was typed
	Invalid     string     // the field of the form that Alert is about
	Token       string     // of the mailed link
	Key         string     // a new API key, shown once
	Factor      Factor     // on the account page
	Challenge   *Challenge // on the login page, if it asks for one
	Data        any        // of the page: see its template
	Page        Page       // is set by Render
}

// A Challenge is what the login page's script solves: see package proofofwork.
type Challenge struct{ Token, Bits string }

// A Factor is what the account page shows of the second factor.
type Factor struct {
	On, Off bool   // neither if it is not known
	Since   string // the day when it was turned on
	Left    int    // recovery codes that were not used

	Begun  bool // a code is awaited that turns it on
	Secret string
	QR     template.URL // an image of Secret; both are shown once

	RecoveryCodes []string // new ones, shown once
}

//go:embed templates/*.html style.css *.js
var files embed.FS

var templates = func() map[Page]*template.Template {
	set := make(map[Page]*template.Template)
	for _, p := range []Page{Home, Login, OTP, Register, Confirm, Reset, ResetConfirm, Account, Outbox, Attack, Error} {
		set[p] = template.Must(template.ParseFS(files, "templates/layout.html", fmt.Sprintf("templates/%s.html", p)))
	}
	return set
}()

// Render writes the page. A page that cannot be drawn is an error, and then
// nothing was written.
func Render(w http.ResponseWriter, status int, p Page, v View) error {
	t, ok := templates[p]
	if !ok {
		return fmt.Errorf("pages: no page %q", p)
	}
	v.Page = p
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "layout.html", v); err != nil {
		return fmt.Errorf("pages: %w", err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	w.Write(b.Bytes())
	return nil
}

// File serves the style sheet or one of the scripts.
func File(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		http.ServeFileFS(w, r, files, name)
	}
}

// Sentence makes an error's text a sentence.
func Sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + strings.TrimSuffix(s[1:], ".") + "."
}
