package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
)

// CF-01: what is in force is printed at the start, with units; a bare number
// as a duration starts nothing.
func TestTheLimitsInForceArePrinted(t *testing.T) {
	dir := t.TempDir()
	own := filepath.Join(dir, "own.yaml")
	require.NoError(t, os.WriteFile(own, []byte("login: {account: {by: account, limit: 7 per 90s, counts: failures}}\n"), 0o600))
	out := new(testkit.Buffer)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- run(ctx, []string{"-addr", "127.0.0.1:0", "-db", filepath.Join(dir, "demo.db"), "-policies", own}, noEnv, out, io.Discard)
	}()
	require.Eventually(t, func() bool { return strings.Contains(out.String(), "admin/all") }, 20*time.Second, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-ended)
	require.Regexp(t, `(?m)^login/account +7 per 1m30s +by account +failures +deny$`, out.String())
	require.Regexp(t, `(?m)^reauth/account +5 per 15m0s +by account, untrusted +failures +deny$`, out.String())
	require.NotContains(t, out.String(), "login/ip", "a policy is replaced as a whole")

	for _, bare := range []string{"5 per 900", "5 per 0", "5", "900000"} {
		require.NoError(t, os.WriteFile(own, []byte("login: {account: {by: account, limit: "+bare+"}}\n"), 0o600))
		err := run(t.Context(), []string{"-db", filepath.Join(dir, "other.db"), "-policies", own}, noEnv, io.Discard, io.Discard)
		require.ErrorContains(t, err, "own.yaml:1:", bare)
	}
	require.NoFileExists(t, filepath.Join(dir, "other.db"))
}
