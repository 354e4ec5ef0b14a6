package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"authguard/guard"
	"authguard/policies"
)

// policyError is what is wrong with the file of -policies: one line for each
// error, which begins with the file's name.
type policyError struct{ error }

func (e policyError) Unwrap() error { return e.error }

// loadLimits are the presets, with the policies of the file, if one is named, in
// their place, and the lists of that file. An action that the presets do not have is none of the service's:
// its limits would never be asked, and the one that was meant stays as it is.
func loadLimits(file string) ([]guard.Policy, guard.Lists, error) {
	limits := policies.Default()
	if file == "" {
		return limits, guard.Lists{}, nil
	}
	own, err := policies.LoadFile(file)
	if err != nil {
		return nil, guard.Lists{}, policyError{err}
	}
	known := make([]string, len(limits))
	for i, p := range limits {
		known[i] = p.Action
	}
	var unknown []error
	for _, p := range own.Policies {
		if slices.Contains(known, p.Action) {
			continue
		}
		hint := ""
		if near := nearest(p.Action, known); near != "" {
			hint = fmt.Sprintf(", did you mean %s?", near)
		}
		unknown = append(unknown, fmt.Errorf("%s: %s: no such action%s", file, p.Action, hint))
	}
	if unknown != nil {
		unknown = append(unknown, fmt.Errorf("%s: the actions are %s", file, strings.Join(known, ", ")))
		return nil, guard.Lists{}, policyError{errors.Join(unknown...)}
	}
	return policies.Override(limits, own.Policies), own.Lists, nil
}

// nearest is the candidate that at most two slips turn s into, or "".
func nearest(s string, candidates []string) (near string) {
	best := 3
	for _, c := range candidates {
		if d := distance(s, c); d < best && d < len(c) {
			near, best = c, d
		}
	}
	return near
}

// distance is how many bytes must be added, dropped or changed to get from a to b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
