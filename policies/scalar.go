package policies

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// isString says whether n is a string, in YAML's eyes too: not 5, true or null.
func isString(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!str" }

// describe names what stands at n, for errors.
func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode && len(n.Content) == 0:
		return "an empty map"
	case n.Kind == yaml.MappingNode:
		return "a map"
	case n.Kind == yaml.SequenceNode && len(n.Content) == 0:
		return "an empty list"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Tag == "!!null":
		return "empty"
	case isString(n):
		return fmt.Sprintf("%q", short(n.Value))
	}
	return clip(n.Value)
}

// clip shortens what a file says for an error, and keeps it on one line.
func clip(s string) string {
	printable := func(c rune) rune {
		if unicode.IsPrint(c) {
			return c
		}
		return utf8.RuneError
	}
	return strings.Map(printable, short(s))
}

func short(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// oneOf reads a key whose value is one of a few words.
func oneOf[T fmt.Stringer](r *reader, n *yaml.Node, where, field string, values ...T) T {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = v.String()
		if isString(n) && n.Value == words[i] {
			return v
		}
	}
	last := len(words) - 1
	r.at(n, "%s: %s is %s, want %s or %s", where, field, describe(n), strings.Join(words[:last], ", "), words[last])
	return values[0]
}

// nearest is the candidate that s most likely misspells.
func nearest(s string, candidates []string) (near string, ok bool) {
	s = strings.ToLower(s)
	if len(s) > 32 {
		return "", false
	}
	best := 3 // more than two slips are another word
	for _, c := range candidates {
		if d := distance(s, c); d < best && d < len(c) {
			near, best = c, d
		}
	}
	return near, near != ""
}

// distance is how many bytes must be added, dropped, changed or swapped with
// their neighbour to get from a to b (the optimal string alignment distance).
func distance(a, b string) int {
	var before, last []int
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, last, row = last, row, make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := last[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, last[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
	}
	return row[len(b)]
}
