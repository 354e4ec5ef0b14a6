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
	return decodeJSON(body, collector{names: names})
}

func decodeJSON(body []byte, c collector) (Values, error) {
	malformed := bad("the body must be one JSON object")
	if !utf8.Valid(body) {
		return nil, bad("the body must be UTF-8")
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, malformed
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, malformed
		}
		value, err := dec.Token()
		if err != nil {
			return nil, malformed
		}
		text, ok := value.(string)
		if !ok {
			return nil, bad("every field must be a string")
		}
		if err := c.add(key.(string), text); err != nil {
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
	return decodeForm(body, collector{names: names})
}

func decodeForm(body []byte, c collector) (Values, error) {
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, bad("the body must be a form")
	}
	for name, values := range form {
		for _, v := range values {
			if err := c.add(name, v); err != nil {
				return nil, err
			}
		}
	}
	return c.all()
}

// collector takes each wanted field once.
type collector struct {
	names    []string
	optional bool // any of them may be missing
	values   Values
}

func (c *collector) add(name, value string) error {
	if !slices.Contains(c.names, name) {
		return bad("the fields must be " + strings.Join(c.names, ", ") + " and no others")
	}
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
		if _, given := c.values[name]; !given && !c.optional {
			return nil, bad("the field " + name + " is missing")
		}
	}
	return c.values, nil
}
