package fields

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
)

// MaxBytes is the largest body that is read.
const MaxBytes = 8 << 10

// Values are the fields of a body by name: every one that was asked for, unless
// it was optional, and no other. A value may be empty.
type Values map[string]string

// An Error says what is wrong with a body. Its text is fit for the client: it
// repeats no value.
type Error struct {
	Status int // 400, 413 or 415
	Detail string
}

func (e *Error) Error() string { return "fields: " + e.Detail }

func bad(detail string) error { return &Error{http.StatusBadRequest, detail} }

// Read reads r's body, which must consist of the named fields; "name?" may be
// missing, and is not in the Values then. Values of the query string never count. The error is an *Error, or the connection's.
func Read(w http.ResponseWriter, r *http.Request, names ...string) (Values, error) {
	return read(w, r, &collector{names: names})
}

// ReadOptional is Read of fields each of which may be missing, and with all of
// them the body. What is missing is not in the Values.
func ReadOptional(w http.ResponseWriter, r *http.Request, names ...string) (Values, error) {
	return read(w, r, &collector{names: names, optional: true})
}

// Peek reads the named fields, among any others, and puts the body back for
// whoever reads it next. A field that some reader could take for a named one,
// such as EMAIL, email[] or another email in the query string, is refused.
//
// A form that was parsed before (r.PostForm) is read from there.
func Peek(r *http.Request, names ...string) (Values, error) {
	values, err := peek(r, &collector{names: names, open: true})
	if err != nil {
		return nil, err
	}
	for name, query := range r.URL.Query() {
		for wanted, v := range values {
			if resembles(name, wanted) && slices.ContainsFunc(query, func(q string) bool { return q != v }) {
				return nil, bad("the field " + wanted + " must not differ in the query")
			}
		}
	}
	return values, nil
}

func peek(r *http.Request, c *collector) (Values, error) {
	if r.PostForm != nil && mediaType(r.Header) == mediaForm {
		return c.form(r.PostForm)
	}
	body, decode, err := bodyOf(nil, r, false)
	if err != nil {
		return nil, err
	}
	r.Body = replayed{bytes.NewReader(body), r.Body}
	return decode(body, c)
}

// replayed is a body that was read already. Closing it closes the connection's.
type replayed struct {
	io.Reader
	io.Closer
}

func read(w http.ResponseWriter, r *http.Request, c *collector) (Values, error) {
	body, decode, err := bodyOf(w, r, c.optional)
	if err != nil {
		return nil, err
	}
	if decode == nil {
		return Values{}, nil
	}
	return decode(body, c)
}

type decodeFunc func([]byte, *collector) (Values, error)

// bodyOf reads a body and tells how to decode it: by nothing if there may be
// none and is none, which has no type either.
func bodyOf(w http.ResponseWriter, r *http.Request, optional bool) ([]byte, decodeFunc, error) {
	if enc := strings.Join(r.Header.Values("Content-Encoding"), ", "); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, nil, &Error{http.StatusUnsupportedMediaType, "the body must not be compressed or otherwise encoded"}
	}
	decode, refused := decoder(r.Header)
	if refused != nil && !optional {
		return nil, nil, refused
	}
	if r.Body == nil { // a server's request has one; not all that are made by hand have
		r.Body = http.NoBody
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBytes))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, nil, &Error{http.StatusRequestEntityTooLarge, "the body must have at most 8 KiB"}
	}
	if err != nil {
		return nil, nil, err
	}
	if len(body) == 0 && optional {
		return nil, nil, nil
	}
	return body, decode, refused
}

// decoder picks how to read a body by its media type.
func decoder(h http.Header) (decodeFunc, error) {
	switch mediaType(h) {
	case "application/json":
		return decodeJSON, nil
	case mediaForm:
		return decodeForm, nil
	}
	return nil, &Error{http.StatusUnsupportedMediaType,
		"the content type must be application/json or application/x-www-form-urlencoded, in UTF-8"}
}

const mediaForm = "application/x-www-form-urlencoded"

// mediaType is the one type of a body in UTF-8, or "".
func mediaType(h http.Header) string {
	types := h.Values("Content-Type")
	if len(types) != 1 {
		return ""
	}
	media, params, err := mime.ParseMediaType(types[0])
	if charset, given := params["charset"]; err != nil || given && !strings.EqualFold(charset, "utf-8") {
		return ""
	}
	return media
}
