package policies

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"authguard/guard"
	"go.yaml.in/yaml/v3"
)

// maxFile bounds what is read of a file. A policy file has a few kilobytes.
const maxFile = 1 << 20

// A File is what a policy file has.
type File struct {
	Policies []guard.Policy
	Lists    guard.Lists // empty if it has none
}

// Load reads the policies of the file at path; see the package comment for its format.
// A file with errors yields no policies at all.
func Load(path string) ([]guard.Policy, error) {
	f, err := LoadFile(path)
	return f.Policies, err
}

// LoadFile reads all that the policy file at path has, at once, so that policies and
// lists are of one version of it. A file with errors yields nothing at all.
func LoadFile(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return File{}, fmt.Errorf("policies: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return File{}, fmt.Errorf("policies: %w", err)
	}
	return ParseFile(path, data)
}

// Parse reads policies from data; see the package comment for the format. The
// name is for errors, each of which reads "name:line:column: message". Parse
// reports all errors of the file, joined in its order, up to twenty. The
// policies are in the order of the file too, and valid.
func Parse(name string, data []byte) ([]guard.Policy, error) {
	f, err := ParseFile(name, data)
	return f.Policies, err
}

// ParseFile is [LoadFile] of data, with the errors of [Parse].
func ParseFile(name string, data []byte) (File, error) {
	r := newReader(name)
	policies := r.read(data)
	if err := r.err(); err != nil {
		return File{}, err
	}
	return File{Policies: policies, Lists: r.lists}, nil
}

// reader turns a file into policies, noting problems on the way.
type reader struct {
	problems
	refused map[*yaml.Node]bool     // reported by plain, not to be looked at again
	shared  map[sharedState]sharing // the first rule of each
	lists   guard.Lists
}

func newReader(file string) *reader {
	return &reader{problems: problems{file: file}, shared: make(map[sharedState]sharing)}
}

func (r *reader) read(data []byte) []guard.Policy {
	if len(data) > maxFile {
		r.add(1, 1, "file is larger than 1 MiB")
		return nil
	}
	if !r.isText(data) {
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	switch err := dec.Decode(&doc); {
	case err == io.EOF:
		r.add(1, 1, "file is empty, want a map of actions")
		return nil
	case err != nil:
		r.syntax(data, err)
		return nil
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		r.at(&second, "a second document starts here, want one")
	case err != io.EOF:
		r.syntax(data, err)
	}
	r.refused = make(map[*yaml.Node]bool)
	r.plain(&doc)
	return r.policies(doc.Content[0])
}

// plain refuses, all over the document, the features of YAML by which a file
// means something else than it shows.
func (r *reader) plain(n *yaml.Node) {
	if n.Anchor != "" {
		r.at(n, "anchor &%s: anchors are not allowed, write the rule out", clip(n.Anchor))
	}
	switch {
	case n.Kind == yaml.AliasNode:
		r.refuse(n, "alias *%s: aliases are not allowed, write the rule out", clip(n.Value))
	case n.Style&yaml.TaggedStyle != 0:
		r.refuse(n, "tag %s: tags are not allowed", clip(n.Tag))
	case n.Tag == "!!merge":
		r.refuse(n, "merge key <<: merging is not allowed, write the rule out")
	}
	for _, c := range n.Content {
		r.plain(c)
	}
}

func (r *reader) refuse(n *yaml.Node, format string, args ...any) {
	r.refused[n] = true
	r.at(n, format, args...)
}
