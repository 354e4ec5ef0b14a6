package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/guard/recording"
	"authguard/guard/replay"
	"authguard/policies"
)

// A guess and a login at the real service, recorded, and tried on a policy that
// admits one of them.
func TestTheServiceRecordsItsAttempts(t *testing.T) {
	dir := t.TempDir()
	tape := filepath.Join(dir, "tape")
	s := start(t, dir, "-record", tape)
	for password, status := range map[string]int{"wrong": http.StatusUnauthorized, "correct horse battery staple": http.StatusOK} {
		resp, err := http.Post(s.url+"/login", "application/json", strings.NewReader(`{"email":"demo@example.com","password":"`+password+`"}`))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		require.Equal(t, status, resp.StatusCode)
	}
	require.NoError(t, s.stop())
	text, err := os.ReadFile(filepath.Join(tape, "attempts.jsonl"))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(text), "\n"), "flushed at the end")
	for _, clear := range []string{"demo", "example.com", "127.0.0.1", "wrong", "horse"} {
		require.NotContains(t, string(text), clear)
	}

	log, err := recording.OpenReader(tape)
	require.NoError(t, err)
	defer log.Close()
	ps, err := policies.Parse("p.yaml", []byte("login: {account: {by: account, limit: 1 per 1d}}"))
	require.NoError(t, err)
	report, err := replay.Run(t.Context(), log, ps)
	require.NoError(t, err)
	require.Equal(t, 2, report.Actions[0].Attempts)
	require.Equal(t, 1, report.Actions[0].OnlyNow)

	err = run(t.Context(), []string{"-addr", "127.0.0.1:0", "-db", filepath.Join(dir, "demo.db"), "-record", filepath.Join(dir, "demo.db", "x")}, noEnv, io.Discard, io.Discard)
	require.ErrorContains(t, err, "-record: ")
}
