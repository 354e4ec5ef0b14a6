package fields

import (
	"encoding/json"
	"errors"
	"net/url"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var login = []string{"email", "password"}

func TestDecodeJSON(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		detail     string // "" means accepted
	}{
		{"as it should be", `{"email":"a@example.com","password":"x"}`, ""},
		{"any order and white space", " { \"password\" : \"x\",\n\"email\":\"a@example.com\" } \n", ""},
		{"escapes are the same text", `{"\u0065mail":"a@example.com","password":"\u0078"}`, ""},
		{"empty value", `{"email":"","password":"x"}`, "" /* the caller's business */},
		{"nothing", ``, "the body must be one JSON object"},
		{"null", `null`, "the body must be one JSON object"},
		{"array", `[]`, "the body must be one JSON object"},
		{"string", `"email"`, "the body must be one JSON object"},
		{"unfinished", `{"email":"a@example.com","password":"x"`, "the body must be one JSON object"},
		{"trailing comma", `{"email":"a","password":"x",}`, "the body must be one JSON object"},
		{"second document", `{"email":"a","password":"x"}{"email":"b","password":"y"}`, "the body must be one JSON object"},
		{"trailing text", `{"email":"a","password":"x"} true`, "the body must be one JSON object"},
		{"trailing rubbish", `{"email":"a","password":"x"}]`, "the body must be one JSON object"},
		{"repeated", `{"email":"a","email":"b","password":"x"}`, "the field email must come once"},
		{"repeated through an escape", `{"email":"a","e\u006dail":"b","password":"x"}`, "the field email must come once"},
		{"array of values", `{"email":["a","b"],"password":"x"}`, "every field must be a string"},
		{"object", `{"email":{"a":"b"},"password":"x"}`, "every field must be a string"},
		{"number", `{"email":"a","password":12345678}`, "every field must be a string"},
		{"null value", `{"email":null,"password":"x"}`, "every field must be a string"},
		{"other case", `{"EMAIL":"a","password":"x"}`, "the fields must be email, password and no others"},
		{"unknown beside", `{"email":"a","password":"x","user":"b"}`, "the fields must be email, password and no others"},
		{"missing", `{"email":"a"}`, "the field password is missing"},
		{"empty object", `{}`, "the field email is missing"},
		{"no UTF-8", "{\"email\":\"a\xff\",\"password\":\"x\"}", "the body must be UTF-8"},
		{"half a surrogate pair", `{"email":"a","password":"\ud800"}`, "the field password must be text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := DecodeJSON([]byte(tt.body), login)
			check(t, v, err, tt.detail)
		})
	}
}

func TestDecodeForm(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		detail     string
	}{
		{"as it should be", "email=a%40example.com&password=x", ""},
		{"blank as plus", "email=a&password=a+b", ""},
		{"nothing", "", "the field email is missing"},
		{"repeated", "email=a&email=b&password=x", "the field email must come once"},
		{"array by brackets", "email[]=a&email[]=b&password=x", "the fields must be email, password and no others"},
		{"array by index", "email%5B0%5D=a&password=x", "the fields must be email, password and no others"},
		{"other case", "Email=a&password=x", "the fields must be email, password and no others"},
		{"bad escape", "email=%zz&password=x", "the body must be a form"},
		{"semicolon", "email=a;password=x", "the body must be a form"},
		{"no UTF-8", "email=%ff&password=x", "the field email must be text"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			v, err := DecodeForm([]byte(tt.body), login)
			check(t, v, err, tt.detail)
		})
	}
}

func check(t *testing.T, v Values, err error, detail string) {
	t.Helper()
	if detail == "" {
		require.NoError(t, err)
		assert.Len(t, v, len(login))
		return
	}
	var e *Error
	require.ErrorAs(t, err, &e)
	assert.Equal(t, detail, e.Detail)
	assert.Equal(t, 400, e.Status)
	assert.Nil(t, v)
}

// FuzzDecode proves that what is accepted is what every other reader of the
// body would see: the named fields, valid text, nothing else.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"email":"a","password":"x"}`))
	f.Add([]byte(`{"email":"a","EMAIL":"b","password":"x"}`))
	f.Add([]byte(`{"email":"a","password":"\ud83d\ude00"}{}`))
	f.Add([]byte("email=a&password=x"))
	f.Fuzz(func(t *testing.T, body []byte) {
		if v, err := DecodeJSON(body, login); err == nil {
			var other map[string]string
			require.NoError(t, json.Unmarshal(body, &other))
			assert.Equal(t, map[string]string(v), other)
			text(t, v)
		} else if e := (*Error)(nil); !errors.As(err, &e) {
			t.Fatalf("not an *Error: %v", err)
		}
		if v, err := DecodeForm(body, login); err == nil {
			other, err := url.ParseQuery(string(body))
			require.NoError(t, err)
			assert.Equal(t, url.Values{"email": {v["email"]}, "password": {v["password"]}}, other)
			text(t, v)
		}
	})
}

func text(t *testing.T, v Values) {
	t.Helper()
	assert.Len(t, v, len(login))
	for _, s := range v {
		assert.True(t, utf8.ValidString(s))
	}
}
