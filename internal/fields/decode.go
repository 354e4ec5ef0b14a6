package fields

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// DecodeJSON reads one JSON object of exactly the named fields, whose values
// are strings.
func DecodeJSON(body []byte, names []string) (Values, error) {
	return decodeJSON(body, &collector{names: names})
}

func decodeJSON(body []byte, c *collector) (Values, error) {
	malformed := bad("the body must be one JSON object")
	if !utf8.Valid(body) {
		return nil, bad("the body must be UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, malformed
	}
	seen := make(map[string]bool)
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, malformed
		}
		var value any
		if err := dec.Decode(&value); err != nil {
			return nil, malformed
		}
		name := key.(string)
		if wanted, err := c.wants(name); err != nil {
			return nil, err
		} else if !wanted {
			if seen[name] {
				return nil, bad("every field must come once")
			}
			seen[name] = true
			continue
		}
		text, ok := value.(string)
		if !ok {
			return nil, bad("every field must be a string")
		}
		if err := c.add(name, text); err != nil {
			return nil, err
		}
	}
	if _, err := dec.Token(); err != nil { // the closing brace
		return nil, malformed
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, malformed
	}
	return c.all()
}

// DecodeForm reads a form of exactly the named fields.
func DecodeForm(body []byte, names []string) (Values, error) {
	return decodeForm(body, &collector{names: names})
}

func decodeForm(body []byte, c *collector) (Values, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, bad("the body must be a form")
	}
	return c.form(form)
}

// collector takes each wanted field once.
type collector struct {
	names    []string
	optional bool // any of them may be missing
	open     bool // others may stand beside them
	values   Values
}

// wants reports whether name is a wanted field, and refuses what stands in its
// way: a field that is not wanted or, where others may be, one that some reader
// of the body would take for one that is.
func (c *collector) wants(name string) (bool, error) {
	if slices.ContainsFunc(c.names, func(n string) bool { return strings.TrimSuffix(n, "?") == name }) {
		return true, nil
	}
	if !c.open {
		return false, bad("the fields must be " + strings.Join(c.names, ", ") + " and no others")
	}
	for _, n := range c.names {
		if resembles(name, n) {
			return false, bad("the field " + n + " must come once, in this spelling")
		}
	}
	return false, nil
}

// resembles reports whether some reader takes name for wanted: encoding/json and
// others ignore case; email[] is an array to many.
func resembles(name, wanted string) bool {
	bare, _, _ := strings.Cut(name, "[")
	return strings.EqualFold(strings.TrimSpace(bare), strings.TrimSuffix(wanted, "?"))
}

func (c *collector) form(form url.Values) (Values, error) {
	for name, values := range form {
		wanted, err := c.wants(name)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if !wanted {
				break
			}
			if err := c.add(name, v); err != nil {
				return nil, err
			}
		}
	}
	return c.all()
}

func (c *collector) add(name, value string) error {
	if _, twice := c.values[name]; twice {
		return bad("the field " + name + " must come once")
	}
	// U+FFFD stands for what was no text: bytes that are not UTF-8, or half of
	// a surrogate pair. Two such values would be one, so neither is taken.
	if strings.ContainsRune(value, utf8.RuneError) {
		return bad("the field " + name + " must be text")
	}
	if c.values == nil {
		c.values = make(Values, len(c.names))
	}
	c.values[name] = value
	return nil
}

func (c *collector) all() (Values, error) {
	for _, name := range c.names {
		if _, given := c.values[name]; !given && !c.optional && !strings.HasSuffix(name, "?") {
			return nil, bad("the field " + name + " is missing")
		}
	}
	return c.values, nil
}
