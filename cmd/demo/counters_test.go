package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// guess is the status of a login with a wrong password.
func guess(t *testing.T, s started) int {
	t.Helper()
	resp, err := http.Post(s.url+"/login", "application/json", strings.NewReader(`{"email":"demo@example.com","password":"wrong"}`))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

// Who is refused stays so through a deploy, and through one more without a request.
func TestARestartIsNoAmnesty(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir)
	for range 5 {
		require.Equal(t, http.StatusUnauthorized, guess(t, s))
	}
	require.Equal(t, http.StatusTooManyRequests, guess(t, s))
	require.NoError(t, s.stop())

	info, err := os.Stat(filepath.Join(dir, "demo.limits"))
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	s = start(t, dir)
	require.NoFileExists(t, filepath.Join(dir, "demo.limits"), "a crash from now on must not bring old counts back")
	require.NoError(t, s.stop())

	s = start(t, dir)
	require.Equal(t, http.StatusTooManyRequests, guess(t, s))
	require.NoError(t, s.stop())
	left, err := filepath.Glob(filepath.Join(dir, ".limits-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// A damaged file is told in one line and kept, and the service starts.
func TestDamagedCountsAreSetAside(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "demo.limits")
	s := start(t, dir)
	require.Equal(t, http.StatusUnauthorized, guess(t, s))
	require.NoError(t, s.stop())
	data, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, damaged := range [][]byte{nil, data[:len(data)-1], bytes.Replace(data, []byte("store 1"), []byte("store 2"), 1)} {
		require.NoError(t, os.WriteFile(file, damaged, 0o600))
		log := new(testkit.Buffer)
		o, err := parseOptions([]string{"-db", filepath.Join(dir, "demo.db")}, noEnv, log)
		require.NoError(t, err)
		store, err := openStore(t.Context(), o, nil, nil)
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), file+".damaged")
		kept, err := os.ReadFile(file + ".damaged")
		require.NoError(t, err)
		require.Equal(t, len(damaged), len(kept))
		require.NoFileExists(t, file)
		ok, err := store.Take(t.Context(), []limiter.Charge{{Key: "k", Limit: limiter.TokenBucket{Capacity: 1, Refill: 1, Per: 1e9}, Ask: limiter.Ask{Cost: 1}}})
		require.NoError(t, err)
		require.True(t, ok)
		store.close()
		require.FileExists(t, file)
	}
}

// What cannot be read is no damage: its counts may be good, so nothing starts
// without them.
func TestCountsThatCannotBeReadStopTheStart(t *testing.T) {
	file := filepath.Join(t.TempDir(), "demo.limits")
	require.NoError(t, os.Mkdir(file, 0o700))
	_, err := openMemory(file, nil)
	require.ErrorContains(t, err, "limits: memstore: ")
}

func TestCountsThatCannotBeSavedAreTold(t *testing.T) {
	dir := t.TempDir()
	require.Error(t, saveCounters(filepath.Join(dir, "absent", "demo.limits"), memstore.New(memstore.Config{})))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "demo.limits"), 0o700))
	require.Error(t, saveCounters(filepath.Join(dir, "demo.limits"), memstore.New(memstore.Config{})))
	left, err := filepath.Glob(filepath.Join(dir, ".limits-*"))
	require.NoError(t, err)
	require.Empty(t, left)
}
