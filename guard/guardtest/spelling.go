package guardtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// A spelling is another way to write one request.
type spelling struct {
	name   string // as in "POST /login/"
	change func(*draft)
}

// of is r in this spelling.
func (s spelling) of(t testing.TB, r *http.Request) *http.Request {
	t.Helper()
	d, err := newDraft(r)
	if err == nil {
		s.change(d)
		r, err = d.request()
	}
	if err != nil {
		t.Fatalf("guardtest: Target.Request: %s: %v", s.name, err)
	}
	return r
}

// draft is a request before it is written.
type draft struct {
	from                *http.Request
	method, path, query string
	header              http.Header
	body                []byte
}

func newDraft(r *http.Request) (*draft, error) {
	d := &draft{from: r, method: r.Method, path: r.URL.EscapedPath(), query: r.URL.RawQuery, header: r.Header.Clone()}
	if d.method == "" {
		d.method = http.MethodGet // as in http.Request
	}
	if d.header == nil {
		d.header = http.Header{}
	}
	if d.path == "" {
		d.path = "/"
	}
	if d.path[0] != '/' {
		return nil, fmt.Errorf("the path is %q, want one that begins with /", d.path)
	}
	if r.Body == nil {
		return d, nil
	}
	var err error
	d.body, err = io.ReadAll(r.Body)
	return d, err
}

// request is d as a server reads it.
func (d *draft) request() (*http.Request, error) {
	target := d.path
	if d.query != "" {
		target += "?" + d.query
	}
	u, err := url.ParseRequestURI(target)
	if err != nil {
		return nil, err
	}
	r := d.from.Clone(d.from.Context())
	r.Method, r.URL, r.RequestURI, r.Header = d.method, u, target, d.header
	r.Body, r.ContentLength = http.NoBody, int64(len(d.body))
	if len(d.body) > 0 {
		r.Body = io.NopCloser(bytes.NewReader(d.body))
	}
	return r, nil
}

// ask adds to the query.
func (d *draft) ask(query string) {
	d.query = strings.TrimPrefix(d.query+"&"+query, "&")
}

func (d *draft) send(contentType string, body []byte) {
	d.body = body
	d.header.Del("Content-Type")
	if contentType != "" {
		d.header.Set("Content-Type", contentType)
	}
}

// nameOf names a request as it is: "POST /login".
func nameOf(r *http.Request) string { return r.Method + " " + r.URL.EscapedPath() }

// fields are those of a form or of a JSON object, nil if the body is neither.
func (d *draft) fields() url.Values {
	var form url.Values
	switch media, _, _ := mime.ParseMediaType(d.header.Get("Content-Type")); media {
	case "application/x-www-form-urlencoded":
		form, _ = url.ParseQuery(string(d.body))
	case "application/json":
		var object map[string]any
		if json.Unmarshal(d.body, &object) != nil {
			return nil
		}
		form = url.Values{}
		for name, value := range object {
			form.Set(name, fmt.Sprint(value))
		}
	}
	return form
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
	http.MethodDelete, http.MethodOptions, http.MethodTrace, "QUERY", "PROPFIND",
}

// spellings are all ways to write r that some router, middleware or handler may
// take for the same request.
func spellings(r *http.Request) ([]spelling, error) {
	d, err := newDraft(r)
	if err != nil {
		return nil, err
	}
	name := d.method + " " + d.path
	var all []spelling
	add := func(name string, change func(*draft)) { all = append(all, spelling{name, change}) }

	verbs := append([]string{strings.ToLower(d.method), strings.ToUpper(d.method[:1]) + strings.ToLower(d.method[1:])}, methods...)
	for _, path := range append([]string{d.path}, paths(d.path)...) {
		for _, method := range verbs {
			if path != d.path || method != d.method {
				add(method+" "+path, func(d *draft) { d.method, d.path = method, path })
			}
		}
	}
	host := r.Host
	if host == "" {
		host = "localhost"
	}
	add(d.method+" http://"+host+d.path, func(d *draft) { d.path = "http://" + host + d.path })

	fields := d.fields()
	queries := []string{"guardtest=1", "guardtest=%00", ";", "_method=PUT", "_method=GET"}
	for field := range fields {
		queries = append(queries, url.QueryEscape(field)+"=guardtest")
	}
	slices.Sort(queries)
	for _, query := range queries {
		add(name+"?"+query, func(d *draft) { d.ask(query) })
	}

	overridden := []string{d.method, http.MethodPost, http.MethodGet}
	slices.Sort(overridden)
	for _, header := range []string{"X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"} {
		for _, sent := range slices.Compact(overridden) {
			for _, meant := range methods[:7] {
				add(fmt.Sprintf("%s %s with %s: %s", sent, d.path, header, meant), func(d *draft) {
					d.method = sent
					d.header.Set(header, meant)
				})
			}
		}
	}
	for _, header := range []string{"X-Original-URL", "X-Rewrite-URL", "X-Forwarded-Path", "X-Forwarded-Prefix"} {
		add(fmt.Sprintf("%s with %s: /guardtest", name, header), func(d *draft) { d.header.Set(header, "/guardtest") })
		add(fmt.Sprintf("%s / with %s: %s", d.method, header, d.path), func(d *draft) {
			d.header.Set(header, d.path)
			d.path = "/"
		})
	}
	return append(all, bodies(d.path, verbs, fields)...), nil
}

// bodies are fields in other encodings, and in the query, by all verbs.
func bodies(path string, verbs []string, fields url.Values) (all []spelling) {
	if len(fields) == 0 {
		return nil
	}
	object := map[string]string{}
	var parts bytes.Buffer
	form := multipart.NewWriter(&parts)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		object[name] = fields.Get(name)
		form.WriteField(name, fields.Get(name)) // into memory: never fails
	}
	form.Close()
	text, _ := json.Marshal(object) // strings: never fails
	for _, method := range verbs {
		for _, body := range []struct{ name, contentType, text string }{
			{"as JSON", "application/json", string(text)},
			{"as JSON with a charset", "application/json; charset=utf-8", string(text)},
			{"as JSON in capitals", "Application/JSON", string(text)},
			{"as JSON of a media type of its own", "application/vnd.guardtest+json", string(text)},
			{"as JSON that says text/plain", "text/plain", string(text)},
			{"as JSON that says nothing", "", string(text)},
			{"as a form", "application/x-www-form-urlencoded", fields.Encode()},
			{"as a form with a charset", "application/x-www-form-urlencoded; charset=utf-8", fields.Encode()},
			{"as multipart", form.FormDataContentType(), parts.String()},
		} {
			all = append(all, spelling{method + " " + path + " " + body.name, func(d *draft) {
				d.method = method
				d.send(body.contentType, []byte(body.text))
			}})
		}
		all = append(all, spelling{method + " " + path + " with the fields in the query", func(d *draft) {
			d.method = method
			d.ask(fields.Encode())
			d.send("", nil)
		}})
	}
	return all
}
