package policies

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// maxProblems is how many errors of a file are told at once.
const maxProblems = 20

// problems collects what is wrong with a file.
type problems struct {
	file string
	list []problem
}

type problem struct {
	line, column int // from 1; the column counts characters
	text         string
}

// at notes a problem at the position of n.
func (ps *problems) at(n *yaml.Node, format string, args ...any) {
	ps.add(n.Line, n.Column, format, args...)
}

func (ps *problems) add(line, column int, format string, args ...any) {
	ps.list = append(ps.list, problem{max(1, line), max(1, column), fmt.Sprintf(format, args...)})
}

// err is all problems in the order of the file, one a line, or nil.
func (ps *problems) err() error {
	slices.SortStableFunc(ps.list, func(a, b problem) int {
		return cmp.Or(cmp.Compare(a.line, b.line), cmp.Compare(a.column, b.column))
	})
	list := ps.list
	if more := len(list) - maxProblems + 1; more > 1 {
		list = slices.Clone(list[:maxProblems])
		list[maxProblems-1].text = fmt.Sprintf("%d more errors from here on", more)
	}
	errs := make([]error, len(list))
	for i, p := range list {
		errs[i] = fmt.Errorf("%s:%d:%d: %s", ps.file, p.line, p.column, p.text)
	}
	return errors.Join(errs...)
}
