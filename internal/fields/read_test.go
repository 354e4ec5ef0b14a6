package fields

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const body = `{"email":"a@example.com","password":"x"}`

func TestRead(t *testing.T) {
	for _, tt := range []struct {
		name   string
		header http.Header
		body   string
		status int // 0 means accepted
	}{
		{"JSON", http.Header{"Content-Type": {"application/json"}}, body, 0},
		{"JSON in UTF-8", http.Header{"Content-Type": {"application/json; charset=UTF-8"}}, body, 0},
		{"form", http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, "email=a&password=x", 0},
		{"identity", http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"identity"}}, body, 0},
		{"no type", nil, body, 415},
		{"two types", http.Header{"Content-Type": {"application/json", "text/plain"}}, body, 415},
		{"text", http.Header{"Content-Type": {"text/plain"}}, body, 415},
		{"multipart", http.Header{"Content-Type": {"multipart/form-data; boundary=x"}}, body, 415},
		{"another charset", http.Header{"Content-Type": {"application/json; charset=utf-16"}}, body, 415},
		{"compressed", http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}}, body, 415},
		{"compressed after all", http.Header{"Content-Type": {"application/json"}, "Content-Encoding": {"identity", "gzip"}}, body, 415},
		{"too large", http.Header{"Content-Type": {"application/json"}}, body + strings.Repeat(" ", MaxBytes), 413},
		{"malformed", http.Header{"Content-Type": {"application/json"}}, "{", 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			// The query string has the same names, and never counts.
			r := httptest.NewRequest(http.MethodPost, "/login?email=query&password=query", strings.NewReader(tt.body))
			r.Header = tt.header.Clone()
			v, err := Read(httptest.NewRecorder(), r, "email", "password")
			if tt.status == 0 {
				require.NoError(t, err)
				assert.Equal(t, "x", v["password"])
				return
			}
			var e *Error
			require.ErrorAs(t, err, &e)
			assert.Equal(t, tt.status, e.Status)
		})
	}
}

func TestMissingFieldsAreNotTakenFromTheQuery(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/login?password=query", strings.NewReader(`{"email":"a"}`))
	r.Header.Set("Content-Type", "application/json")
	_, err := Read(httptest.NewRecorder(), r, "email", "password")
	require.Error(t, err)
}

// A request made by hand may have no body at all.
func TestNoBodyIsAnEmptyOne(t *testing.T) {
	r, err := http.NewRequest(http.MethodPost, "/", nil)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	_, err = Peek(r, "email")
	require.ErrorAs(t, err, new(*Error))
	require.NoError(t, r.Body.Close())
}
