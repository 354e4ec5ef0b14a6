package clients

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// node runs a script of ours on question and reads its answer, both in JSON.
func node(t *testing.T, script string, question, answer any, args ...string) {
	t.Helper()
	in, err := json.Marshal(question)
	require.NoError(t, err)
	cmd := exec.Command("node", append([]string{filepath.Join("js", script)}, args...)...)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "%s %v: %s", script, args, &stderr)
	require.NoError(t, json.Unmarshal(out, answer), "%s", out)
}

// packageVersion is the version of a package of npm, as installed.
func packageVersion(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("node_modules", name, "package.json"))
	require.NoError(t, err, "make test-clients installs it")
	var pkg struct{ Version string }
	require.NoError(t, json.Unmarshal(text, &pkg))
	return pkg.Version
}

// moduleVersion is the version of a Go module that this one requires.
func moduleVersion(t *testing.T, path string) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", path).Output()
	require.NoError(t, err)
	return strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
}
