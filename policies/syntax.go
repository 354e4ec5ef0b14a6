package policies

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// isText notes the first character of data that no policy file can hold. The
// YAML package would report it too, but not where it is.
func (r *reader) isText(data []byte) bool {
	line, column := 1, 1
	for len(data) > 0 {
		c, size := utf8.DecodeRune(data)
		switch {
		case c == utf8.RuneError && size <= 1:
			r.add(line, column, "byte 0x%02x is not UTF-8", data[0])
			return false
		case c < ' ' && c != '\t' && c != '\n' && c != '\r', c == 0x7f:
			r.add(line, column, "control character %U", c)
			return false
		case c == '\n':
			line, column = line+1, 0
		}
		column++
		data = data[size:]
	}
	return true
}

var (
	yamlError     = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)
	unknownAnchor = regexp.MustCompile(`^unknown anchor '(.*)' referenced$`)

	// Where its parser (and not its scanner) gives up, the YAML package counts
	// lines from 0.
	countedFrom0 = []string{
		"did not find expected <stream-start>",
		"did not find expected <document start>",
		"did not find expected node content",
		"did not find expected '-' indicator",
		"did not find expected key",
		"did not find expected ',' or ']'",
		"did not find expected ',' or '}'",
		"found undefined tag handle",
		"found duplicate %YAML directive",
		"found incompatible YAML document",
		"found duplicate %TAG directive",
	}
)

// syntax notes an error of the YAML package. It tells a line at most, so the
// column is where the text of that line begins.
func (r *reader) syntax(data []byte, err error) {
	line, text := 1, err.Error()
	if m := yamlError.FindStringSubmatch(text); m != nil {
		text = m[2]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
			if slices.Contains(countedFrom0, text) {
				line++
			}
		}
	}
	if m := unknownAnchor.FindStringSubmatch(text); m != nil {
		if before, _, ok := bytes.Cut(data, []byte("*"+m[1])); ok {
			lastLine := before[bytes.LastIndexByte(before, '\n')+1:]
			r.add(1+bytes.Count(before, []byte("\n")), 1+utf8.RuneCount(lastLine),
				"alias *%s: aliases are not allowed, write the rule out", clip(m[1]))
			return
		}
	}
	lines := strings.Split(string(data), "\n")
	line = min(line, len(lines))
	indent := len(lines[line-1]) - len(strings.TrimLeft(lines[line-1], " \t"))
	r.add(line, 1+indent, "not YAML: %s", strings.Join(strings.Fields(text), " "))
}
