package httpguard

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"
	"strconv"
)

// Refuse answers an error of [guard.Guard.Check] or [guard.Guard.Do]: with a
// problem (RFC 9457) or, to a client that would rather have one, with a small
// page. What a program's mistake was is not told to the client.
//
// To answer with pages of your own, set [Config.Page] and use [Edge.Refuse], or
// [SetHeaders].
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	answer(w, r, ProblemOf(err), drawPage)
}

// SetHeaders sets the fields of an answer to err, without its body's type: for
// an application that renders a page of its own. It returns the problem, with
// the status to write.
func SetHeaders(h http.Header, err error) Problem {
	p := ProblemOf(err)
	p.setHeaders(h)
	return p
}

func (p Problem) setHeaders(h http.Header) {
	if p.RetryAfter > 0 {
		h.Set("Retry-After", strconv.FormatInt(p.RetryAfter, 10))
	}
	h.Set("Cache-Control", "no-store")
}

// answer writes p as JSON, or has page draw it for a browser.
func answer(w http.ResponseWriter, r *http.Request, p Problem, page func(http.ResponseWriter, *http.Request, Problem)) {
	h := w.Header()
	p.setHeaders(h)
	expose(h, r, "Retry-After")
	h.Set("X-Content-Type-Options", "nosniff")
	if wantsPage(r) {
		page(w, r, p)
		return
	}
	body, _ := json.Marshal(p) // plain fields: never fails
	h.Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	w.Write(append(body, '\n'))
}

// pageTemplate has no style and no script, so every content policy permits it.
var pageTemplate = template.Must(template.New("refusal").Parse(`<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{{.Title}}</title></head>
<body><main><h1>{{.Title}}</h1>{{with .Detail}}<p>{{.}}</p>{{end}}</main></body>
</html>
`))

func drawPage(w http.ResponseWriter, _ *http.Request, p Problem) {
	var page bytes.Buffer
	_ = pageTemplate.Execute(&page, p) // into memory, from plain fields: never fails
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(p.Status)
	w.Write(page.Bytes())
}
