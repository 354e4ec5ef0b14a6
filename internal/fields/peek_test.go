package fields

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const form = "application/x-www-form-urlencoded"

func posted(contentType, target, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, target, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	return r
}

// AC-10, PR-01: nobody can have one account counted and another one tried.
func TestPeekTakesTheOneFieldThatNobodyCanMistake(t *testing.T) {
	for name, tt := range map[string]struct {
		contentType, target, body string
		status                    int // 0 means "a"
	}{
		"JSON":                      {"application/json", "/", `{"email":"a","password":"x","more":{"email":"b"},"list":[1,{}]}`, 0},
		"form":                      {form, "/", "more=1&email=a&more=2", 0},
		"the same in the query":     {form, "/?email=a", "email=a", 0},
		"another in the query":      {form, "/?email=b", "email=a", 400},
		"a spelling in the query":   {form, "/?Email=b", "email=a", 400},
		"an array in the query":     {form, "/?email[]=b", "email=a", 400},
		"a blank in the query":      {form, "/?+email=b", "email=a", 400},
		"only in the query":         {form, "/?email=a", "more=1", 400},
		"twice":                     {"application/json", "/", `{"email":"a","email":"b"}`, 400},
		"twice through an escape":   {"application/json", "/", `{"email":"a","\u0065mail":"b"}`, 400},
		"another field twice":       {"application/json", "/", `{"email":"a","x":1,"x":2}`, 400},
		"another case":              {"application/json", "/", `{"email":"a","EMAIL":"b"}`, 400},
		"only another case":         {"application/json", "/", `{"Email":"a"}`, 400},
		"an array":                  {"application/json", "/", `{"email":["a"]}`, 400},
		"a second document":         {"application/json", "/", `{"email":"a"}{"email":"b"}`, 400},
		"nested only":               {"application/json", "/", `{"user":{"email":"a"}}`, 400},
		"no object":                 {"application/json", "/", `["email"]`, 400},
		"form: twice":               {form, "/", "email=a&email=b", 400},
		"form: array":               {form, "/", "email=a&email[]=b", 400},
		"form: index":               {form, "/", "email[0]=a", 400},
		"form: another case":        {form, "/", "email=a&EMAIL=b", 400},
		"form: broken":              {form, "/", "email=a;email=b", 400},
		"multipart":                 {"multipart/form-data; boundary=x", "/", "--x", 415},
		"no type":                   {"", "/", `{"email":"a"}`, 415},
		"too large":                 {"application/json", "/", `{"email":"a"` + strings.Repeat(" ", MaxBytes) + `}`, 413},
		"a name that is not ASCII":  {"application/json", "/", `{"email":"a","\u212a":"b"}`, 0},
		"a name folded into ASCII":  {"application/json", "/", `{"ema\u0131l":"b","email":"a"}`, 0}, // dotless i folds to itself
		"a form in another charset": {form + "; charset=utf-16", "/", "email=a", 415},
	} {
		t.Run(name, func(t *testing.T) {
			r := posted(tt.contentType, tt.target, tt.body)
			v, err := Peek(r, "email")
			if tt.status != 0 {
				var e *Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, tt.status, e.Status)
				return
			}
			require.NoError(t, err)
			require.Equal(t, Values{"email": "a"}, v)
			again, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			require.Equal(t, tt.body, string(again), "the handler reads what was sent")
			require.NoError(t, r.Body.Close())
		})
	}
}

// encoding/json takes a name with a Kelvin sign for one with a k.
func TestPeekFoldsAsEncodingJSONDoes(t *testing.T) {
	_, err := Peek(posted("application/json", "/", `{"key":"a","\u212aey":"b"}`), "key")
	require.ErrorContains(t, err, "must come once, in this spelling")
}

func TestPeekReadsAFormThatWasParsedBefore(t *testing.T) {
	r := posted(form, "/", "email=a&x=1")
	require.NoError(t, r.ParseForm())
	v, err := Peek(r, "email")
	require.NoError(t, err)
	require.Equal(t, "a", v["email"])

	r = posted(form, "/", "email=a&email=b")
	require.NoError(t, r.ParseForm())
	_, err = Peek(r, "email")
	require.Error(t, err)

	r = posted("application/json", "/", `{"email":"a"}`)
	require.NoError(t, r.ParseForm()) // leaves the body alone
	v, err = Peek(r, "email")
	require.NoError(t, err)
	require.Equal(t, "a", v["email"])
}

// FuzzPeek proves that whoever reads the body after Peek, strictly or not, finds
// the same value.
func FuzzPeek(f *testing.F) {
	for _, body := range []string{
		`{"email":"a"}`, `{"email":"a","EMAIL":"b"}`, `{"email":"a","email":"b"}`, `{"x":{"email":"b"},"email":"a"}`, `{"email":"\ud800"}`,
		"email=a", "email=a&email[]=b", "Email=a&email=b", "email=a;email=b", "email=%61",
	} {
		f.Add(body, "", true)
		f.Add(body, "email=b", false)
	}
	f.Fuzz(func(t *testing.T, body, query string, isJSON bool) {
		r := posted(form, "/", body)
		if isJSON {
			r.Header.Set("Content-Type", "application/json")
		}
		r.URL.RawQuery = query
		v, err := Peek(r, "email")
		if err != nil {
			return
		}
		if isJSON {
			var loose struct{ Email string }
			dec := json.NewDecoder(r.Body)
			require.NoError(t, dec.Decode(&loose))
			require.Equal(t, v["email"], loose.Email)
			var other map[string]any
			require.NoError(t, json.Unmarshal([]byte(body), &other))
			require.Equal(t, v["email"], other["email"])
			return
		}
		require.Equal(t, v["email"], r.FormValue("email"))
		require.Equal(t, []string{v["email"]}, r.PostForm["email"])
		for _, q := range r.URL.Query()["email"] {
			require.Equal(t, v["email"], q)
		}
	})
}
