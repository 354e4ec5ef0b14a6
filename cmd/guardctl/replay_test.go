package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorded is a folder as a process leaves it that was killed.
func recorded(t *testing.T, name, text string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	return dir
}

const (
	oneProcess = `{"at":"2027-01-15T08:00:01Z","id":"1","is":"admitted","action":"login","account":"A","ip":"I"}
{"at":"2027-01-15T08:00:02Z","id":"1","is":"failed"}
{"at":"2027-01-15T08:00:05Z","id":"3","is":"admitted","action":"login","account":"A","ip":"K"}
{"at":"2027-01-15T08:00:06Z","id":"3","is":"succeeded"}
{"at":"2027-01-15T08:00:07Z","id":"4","is":"ad`
	anotherProcess = `{"at":"2027-01-15T08:00:03Z","id":"2","is":"refused","action":"login","account":"A","ip":"J","rules":["account"]}
`
	onePerHour = "login: {account: {by: account, limit: 1 per 1h, counts: failures}}\n"
)

func TestReplayRecordingsOfTwoProcesses(t *testing.T) {
	a, b := recorded(t, "attempts.jsonl", oneProcess), recorded(t, "attempts-2027-01-15T08-00-09.000.jsonl", anotherProcess)
	const want = `
Recorded from 2027-01-15T08:00:01Z to 2027-01-15T08:00:05Z.
1 files end in half a line, which is left out.

login: 3 attempts, of which 1 had succeeded and 1 failed
           then  now  had succeeded  had failed  unknown  accounts  addresses                 first                  last
  refused     1    2              1           0        1         1          2  2027-01-15T08:00:03Z  2027-01-15T08:00:05Z
  account     1    2              1           0        1         1          2  2027-01-15T08:00:03Z  2027-01-15T08:00:05Z
  Refused by both: 1. Only now: 1. Only then: 0, which count as failures here.
`
	for _, logs := range [][]string{{a, b}, {b, a}, {filepath.Join(a, "attempts.jsonl"), b}} {
		status, out, errs := call(t, "replay", logs[0], logs[1], file(t, onePerHour))
		require.Equal(t, statusOK, status, errs)
		require.Empty(t, errs)
		require.Contains(t, out, want)
	}

	status, out, errs := call(t, "replay", "-json", a, b, file(t, onePerHour))
	require.Equal(t, statusOK, status, errs)
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(out), &got))
	require.Equal(t, "2027-01-15T08:00:01Z", got["from"])
	login := got["actions"].([]any)[0].(map[string]any)
	require.Equal(t, "login", login["action"])
	require.EqualValues(t, 1, login["refused_only_now"])
	account := login["rules"].([]any)[0].(map[string]any)
	require.Equal(t, "deny", account["effect"])
	require.EqualValues(t, 2, account["refused"])
	require.EqualValues(t, 1, account["had_succeeded"])
	require.Equal(t, "2027-01-15T08:00:03Z", account["first"])
}

func TestReplayFails(t *testing.T) {
	bad := filepath.Join(recorded(t, "attempts.jsonl", "{}\n"), "attempts.jsonl")
	policy, badPolicy := file(t, onePerHour), file(t, "login: {account: {by: account, limit: 5}}\n")
	for want, args := range map[string][]string{
		"guardctl: " + bad + ":1: no record: at is missing\n":          {bad, policy},
		"guardctl: stat " + bad + ".absent: no such file":              {bad + ".absent", policy},
		"guardctl:\n" + badPolicy + ":1:":                              {bad, badPolicy},
		"guardctl: policies: open " + policy + ".absent: no such file": {bad, policy + ".absent"},
	} {
		status, out, errs := call(t, append([]string{"replay"}, args...)...)
		require.Equal(t, statusFailed, status)
		require.Empty(t, out)
		require.Contains(t, errs, want)
	}
	for want, args := range map[string][]string{
		"guardctl: replay takes recordings and a file of policies, not 1 arguments": {policy},
		"guardctl: replay: flag provided but not defined: -v":                       {"-v", bad, policy},
	} {
		status, _, errs := call(t, append([]string{"replay"}, args...)...)
		require.Equal(t, statusUsage, status)
		require.Contains(t, errs, want)
	}
}
