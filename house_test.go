// Package authguard_test holds the rules of the house: which package may know
// which, and how a package is laid out.
package authguard_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The laws and the store contract must fit into any program.
func TestLimiterNeedsOnlyTheStandardLibraryWithoutHTTP(t *testing.T) {
	for _, p := range list(t, "-deps", "./limiter") {
		if p.ImportPath == "authguard/limiter" {
			continue
		}
		require.True(t, p.Standard, "limiter depends on %s", p.ImportPath)
		require.NotEqual(t, "net/http", p.ImportPath)
	}
}

// The guard decides; it serves nothing, opens no database and knows no server.
func TestGuardKnowsNoTransportAndNoDriver(t *testing.T) {
	allowed := []string{
		"authguard/guard", "authguard/limiter",
		"authguard/limiter/memstore", // what a rule may fall back on while its store is down
		"github.com/dchest/siphash",  // by which memstore hashes keys
	}
	for _, p := range list(t, "-deps", "./guard") {
		if p.Standard {
			require.NotContains(t, []string{"net/http", "database/sql"}, p.ImportPath)
			continue
		}
		ok := slices.Contains(allowed, p.ImportPath) ||
			strings.HasPrefix(p.ImportPath, "golang.org/x/text/") // to fold account names
		require.True(t, ok, "guard depends on %s", p.ImportPath)
	}
}

// Configuration reaches the guard as values; files are for package policies.
func TestGuardReadsNoFiles(t *testing.T) {
	files, err := filepath.Glob("guard/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range f.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			require.NoError(t, err)
			require.NotContains(t, []string{"os", "io/fs", "path/filepath"}, path, file)
		}
	}
}

// What admits everything is for tests: no file that is built into a program may
// know it, under any build tag.
func TestOnlyTestsKnowGuardtest(t *testing.T) {
	read := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path == filepath.FromSlash("guard/guardtest"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		read++
		for _, spec := range f.Imports {
			require.NotEqual(t, `"authguard/guard/guardtest"`, spec.Path.Value, path)
		}
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, read, 50)
}

func TestEveryPackageIntroducesItself(t *testing.T) {
	for _, p := range list(t, "./...") {
		if len(p.GoFiles) == 0 {
			continue // tests only
		}
		file := filepath.Join(p.Dir, "doc.go")
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		require.NoError(t, err, "%s needs a doc.go", p.ImportPath)
		require.NotEmpty(t, f.Doc.Text(), "%s has no package comment", file)
	}
}

// A longer file has two ideas in it.
func TestNoFileIsLongerThan400Lines(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		require.LessOrEqual(t, bytes.Count(text, []byte("\n")), 400, path)
		return nil
	})
	require.NoError(t, err)
}

type listed struct {
	Dir, ImportPath string
	Standard        bool
	GoFiles         []string
}

// list is what `go list` says of packages.
func list(t *testing.T, args ...string) []listed {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json=Dir,ImportPath,Standard,GoFiles"}, args...)...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		all = append(all, p)
	}
	require.NotEmpty(t, all)
	return all
}
