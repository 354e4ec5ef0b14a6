package fields

import (
	"errors"
	"io"
	"mime"
	"net/http"
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

// Read reads r's body, which must consist of the named fields. Values of the
// query string never count. The error is an *Error, or the connection's.
func Read(w http.ResponseWriter, r *http.Request, names ...string) (Values, error) {
	return read(w, r, collector{names: names})
}

// ReadOptional is Read of fields each of which may be missing, and with all of
// them the body. What is missing is not in the Values.
func ReadOptional(w http.ResponseWriter, r *http.Request, names ...string) (Values, error) {
	return read(w, r, collector{names: names, optional: true})
}

func read(w http.ResponseWriter, r *http.Request, c collector) (Values, error) {
	if enc := strings.Join(r.Header.Values("Content-Encoding"), ", "); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, &Error{http.StatusUnsupportedMediaType, "the body must not be compressed or otherwise encoded"}
	}
	decode, refused := decoder(r.Header.Values("Content-Type"))
	if refused != nil && !c.optional {
		return nil, refused
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxBytes))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return nil, &Error{http.StatusRequestEntityTooLarge, "the body must have at most 8 KiB"}
	}
	if err != nil {
		return nil, err
	}
	if len(body) == 0 && c.optional {
		return Values{}, nil // without a body, there is no type of it
	}
	if refused != nil {
		return nil, refused
	}
	return decode(body, c)
}

// decoder picks how to read a body by its media type.
func decoder(contentType []string) (func([]byte, collector) (Values, error), error) {
	refused := &Error{http.StatusUnsupportedMediaType,
		"the content type must be application/json or application/x-www-form-urlencoded, in UTF-8"}
	if len(contentType) != 1 {
		return nil, refused
	}
	media, params, err := mime.ParseMediaType(contentType[0])
	if err != nil {
		return nil, refused
	}
	if charset, given := params["charset"]; given && !strings.EqualFold(charset, "utf-8") {
		return nil, refused
	}
	switch media {
	case "application/json":
		return decodeJSON, nil
	case "application/x-www-form-urlencoded":
		return decodeForm, nil
	}
	return nil, refused
}
