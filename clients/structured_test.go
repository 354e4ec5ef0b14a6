package clients

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"

	"authguard/guard/httpguard"
)

// field is one field of an answer as a parser is given it.
type field struct {
	Form string `json:"form"` // list, dictionary or item
	Text string `json:"text"`
}

// structured are the fields of an answer that tell of limits, by name. The older
// ones are no structured fields by their definition, but have the same syntax.
func structured(d httpguard.Dialect, a answer) map[string]field {
	fields := map[string]field{}
	for name, values := range a.header {
		form := "item"
		switch {
		case name == "Ratelimit" && d == httpguard.Draft7:
			form = "dictionary"
		case name == "Ratelimit", name == "Ratelimit-Policy":
			form = "list"
		case name != "Retry-After" && !strings.Contains(name, "Ratelimit"):
			continue
		}
		fields[name] = field{form, strings.Join(values, ", ")}
	}
	return fields
}

// parsed is what a parser makes of a field.
type parsed struct {
	Canonical string
	Members   []member
}

type member struct {
	Key    string // in a dictionary
	Value  bare
	Params map[string]bare
}

type bare struct{ Type, Text string }

// parse parses by httpsfv.
func (f field) parse(t *testing.T) (p parsed) {
	t.Helper()
	var (
		whole  httpsfv.StructuredFieldValue
		failed error
		add    = func(key string, m httpsfv.Member) { p.Members = append(p.Members, memberOf(t, key, m)) }
		lines  = []string{f.Text}
	)
	switch f.Form {
	case "list":
		list, err := httpsfv.UnmarshalList(lines)
		for _, m := range list {
			add("", m)
		}
		whole, failed = list, err
	case "dictionary":
		dictionary, err := httpsfv.UnmarshalDictionary(lines)
		require.NoError(t, err, f.Text)
		for _, key := range dictionary.Names() {
			m, _ := dictionary.Get(key)
			add(key, m)
		}
		whole = dictionary
	default:
		item, err := httpsfv.UnmarshalItem(lines)
		add("", item)
		whole, failed = item, err
	}
	require.NoError(t, failed, f.Text)
	var err error
	p.Canonical, err = httpsfv.Marshal(whole)
	require.NoError(t, err)
	return p
}

func memberOf(t *testing.T, key string, m httpsfv.Member) member {
	t.Helper()
	item, ok := m.(httpsfv.Item)
	require.True(t, ok, "%s is an inner list", key)
	params := map[string]bare{}
	for _, name := range item.Params.Names() {
		v, _ := item.Params.Get(name)
		params[name] = bareOf(v)
	}
	return member{key, bareOf(item.Value), params}
}

// bareOf is a value with its type, as in js/parse.js.
func bareOf(v any) bare {
	switch v := v.(type) {
	case string:
		return bare{"String", v}
	case int64:
		return bare{"Integer", fmt.Sprint(v)}
	}
	return bare{fmt.Sprintf("%T", v), fmt.Sprint(v)}
}

// manyLaws are tiers by all the laws that fields tell of.
const manyLaws = `api:
  key:    {by: api_key, bucket: 6, refill: 1 per 10m, fixed: 1000 per 24h}
  window: {by: api_key, limit: [5 per 15m, 30 per 24h]}
  spell:  {by: global, counter: 20 per 1500ms}
  all:    {by: ip/48, queue: 100, leak: 1000 per 1s}
`

// Every field of every dialect is read alike by two parsers of RFC 9651, and is
// written as they would write it. The draft wants names to be Strings.
func TestEveryFieldIsStructuredAndCanonical(t *testing.T) {
	for _, dialect := range dialects {
		for _, policy := range []string{fivePer15m, manyLaws} {
			url := startEdge(t, dialect, policy, nil)
			statuses := map[int]int{}
			var names []string // of the field at the same place in asked
			var asked []field
			for range 8 {
				a := get(t, url)
				statuses[a.status]++
				fields := structured(dialect, a)
				_, refused := fields["Retry-After"]
				require.Equal(t, a.status == 429, refused)
				require.Greater(t, len(fields), 1, "%v tells something", dialect)
				for _, name := range slices.Sorted(maps.Keys(fields)) {
					names, asked = append(names, name), append(asked, fields[name])
				}
			}
			require.Equal(t, map[int]int{200: 5, 429: 3}, statuses)

			var theirs []parsed
			node(t, "parse.js", asked, &theirs)
			require.Len(t, theirs, len(asked))
			for i, f := range asked {
				ours := f.parse(t)
				require.Equal(t, ours, theirs[i], "%v: %s", dialect, names[i])
				require.Equal(t, f.Text, ours.Canonical, "%v: %s", dialect, names[i])
				for _, m := range ours.Members {
					want := "Integer"
					if f.Form == "list" && dialect >= httpguard.Draft11 {
						want = "String"
					}
					require.Equal(t, want, m.Value.Type, "%v: %s: %s", dialect, names[i], f.Text)
					for key, v := range m.Params {
						require.Equal(t, "Integer", v.Type, "%v: %s: %s", dialect, names[i], key)
					}
				}
			}
		}
	}
}
