//go:build unix

package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
)

// SIGHUP applies the file to what was counted before; a file with errors changes
// nothing, and each error is logged with its place.
func TestHangupReloadsThePolicies(t *testing.T) {
	dir, log := t.TempDir(), new(testkit.Buffer)
	file := filepath.Join(dir, "limits.yaml")
	write := func(limit string) {
		require.NoError(t, os.WriteFile(file, []byte("login:\n  account: {by: account, limit: "+limit+", counts: failures}\n"), 0o600))
	}
	write("2 per 15m")
	s := startLogging(t, log, dir, "-policies="+file)
	login := func() int {
		resp, err := http.Post(s.url+"/login", "application/json", strings.NewReader(`{"email":"demo@example.com","password":"wrong"}`))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		return resp.StatusCode
	}
	hangup := func(times int, said string) {
		t.Helper()
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		require.Eventually(t, func() bool { return strings.Count(log.String(), said) == times }, 20*time.Second, 10*time.Millisecond)
	}
	metric := func(want string) {
		t.Helper()
		resp, err := http.Get(s.url + "/metrics")
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Contains(t, string(body), "\nauthdemo_policies_last_reload_successful "+want+"\n")
	}
	require.Equal(t, http.StatusUnauthorized, login())
	require.Equal(t, http.StatusUnauthorized, login())
	require.Equal(t, http.StatusTooManyRequests, login())

	write("3 per 900")
	hangup(1, "policies not reloaded")
	require.Contains(t, log.String(), file+":2:33: login/account: limit")
	require.Contains(t, log.String(), "900 has no unit, write 900s")
	metric("0")
	require.Equal(t, http.StatusTooManyRequests, login())

	write("3 per 15m")
	hangup(1, "policies and lists reloaded")
	metric("1")
	require.Equal(t, http.StatusUnauthorized, login())
	require.Equal(t, http.StatusTooManyRequests, login())

	require.NoError(t, os.WriteFile(file, []byte("lists: {deny: {addresses: [127.0.0.1]}}\n"), 0o600))
	hangup(2, "policies and lists reloaded")
	require.Equal(t, http.StatusTooManyRequests, login(), "a list is in force with the file that has it")

	require.NoError(t, os.Remove(file))
	hangup(2, "policies not reloaded")
	require.Contains(t, log.String(), "no such file")
	require.NoError(t, s.stop())
}
