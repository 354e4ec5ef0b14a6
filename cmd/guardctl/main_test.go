package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// call runs the program and gives what it says.
func call(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs strings.Builder
	status = run(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "p.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// The rules of the login preset that bound guesses at one account.
const loginFile = `
login:
  account:  {by: account, limit: [5 per 15m, 30 per 24h], counts: failures}
  streak:   {by: account, shared: password, backoff: {free: 10, base: 30s, max: 1h, lock: 80}}
`

func TestExplainAFile(t *testing.T) {
	status, out, errs := call(t, "explain", file(t, loginFile))
	require.Equal(t, statusOK, status, errs)
	require.Empty(t, errs)
	require.Equal(t, `How much gets through for somebody who guesses without pause: from the first
attempt on, and the most in any second, minute and hour. ~ marks estimates, for
which the end of what was run goes on.

login: guesses
                                              first hour  first day   30 days      year  any second  any minute  any hour
  one address, one account, owner idle                15         30        80       530           5           5        15
  one address, one account, owner logging in          15         30       900    10,950           5           5        15
  one address, all accounts                     no limit   no limit  no limit  no limit    no limit    no limit  no limit
  botnet, one account, owner idle                     15         30        80       530           5           5        15
  botnet, one account, owner logging in               15         30       900    10,950           5           5        15
  Owner idle: who never stops locks the account after 80, 3 days 1 hour after the first.
  Owner idle: the year takes patience, a pause of 7 days after each 10, in which they are forgotten.
`, out)
}

// What a stolen device cookie leaves, where known devices have rules of their own.
// A file may have lists alone; a table without a row would say that nothing is let through.
func TestExplainOfAFileWithoutPoliciesSaysSo(t *testing.T) {
	require.Contains(t, ok(t, "explain", file(t, "lists: {deny: {accounts: [root]}}\n")), "has no policies: the presets are in force")
}

func TestExplainDevices(t *testing.T) {
	status, out, errs := call(t, "explain", file(t, `
pin:
  strangers: {by: account, clients: untrusted, limit: 5 per 1h, backoff: {free: 5, base: 1m, max: 1h, lock: 80, forget: 90d}}
  device:    {by: device, clients: trusted, limit: 5 per 1h, backoff: {free: 5, base: 1m, max: 1h, lock: 20, forget: 180d, forget_beyond: 180d}}
  devices:   {by: account, clients: trusted, backoff: {free: 5, base: 1m, max: 1h, lock: 20, forget: 180d, forget_beyond: 180d}}
`))
	require.Equal(t, statusOK, status, errs)
	require.Equal(t, `pin: guesses
                                                       first hour  first day   30 days      year  any second  any minute  any hour
  one address, one account, owner idle                          5         32        80       320           5           5         5
  one address, one account, owner logging in                    5         40       967    11,676           5           5         5
  one address, all accounts                              no limit   no limit  no limit  no limit    no limit    no limit  no limit
  botnet, one account, owner idle                               5         32        80       320           5           5         5
  botnet, one account, owner logging in                         5         40       967    11,676           5           5         5
  stolen device cookie, one account, owner idle                 5         20        20        20           5           5         5
  stolen device cookie, one account, owner logging in           5         20        20        20           5           5         5
  Owner idle: who never stops locks the account after 80, 2 days 23 hours 2 minutes after the first.
  An owner on a known device is never refused by a botnet, nor by anybody behind the same address.
  Owner idle: who never stops locks the account's devices after 20, 11 hours 2 minutes after the first.
  Owner logging in: who never stops locks the account's devices after 20, 11 hours 2 minutes after the first.
`, out[strings.Index(out, "pin:"):])
}

func TestExplainThePresets(t *testing.T) {
	if raced {
		t.Skip("attacks that take long under the race detector")
	}
	status, out, errs := call(t, "explain")
	require.Equal(t, statusOK, status, errs)
	for _, action := range []string{"login: guesses", "reauth: guesses", "password_reset: mails", "api_pro: attempts", "admin: guesses"} {
		require.Contains(t, out, "\n"+action+"\n")
	}
	lines := strings.Split(out, "\n")
	for _, want := range []string{
		"one address, one account, owner idle 15 30 80 530 5 5 15",
		"one address, one account, owner logging in 15 30 900 10,950 5 5 15",
		"one IPv6 /48, all accounts 400 9,577 ~287,000 ~3,500,000 400 406 799",
		"botnet, one account, owner idle 15 30 80 530 5 5 15",
		"stolen device cookie, one account, owner idle 15 20 20 20 5 5 15",
		"stolen device cookie, one account, owner logging in 15 20 20 20 5 5 15",
		"An owner on a known device is never refused by a botnet, nor by anybody behind the same address.",
		"Owner idle: who never stops locks the account after 80, 3 days 1 hour after the first.",
	} {
		found := false
		for _, line := range lines {
			found = found || strings.Join(strings.Fields(line), " ") == want
		}
		require.True(t, found, "no line %q in\n%s", want, out)
	}
}

func TestBadFilesFailWithTheirPlace(t *testing.T) {
	path := file(t, "login:\n  ip: {by: ip, limit: 5 per 900}\n  r:  {by: ip, limit: [30 per 15m, 5 per 24h]}\n")
	status, out, errs := call(t, "explain", path)
	require.Equal(t, statusFailed, status)
	require.Empty(t, out)
	require.Equal(t, "guardctl:\n"+path+`:2:23: login/ip: limit "5 per 900": 900 has no unit, write 900s`+"\n"+
		path+`:3:24: login/r: limit "30 per 15m" cannot deny: 5 per 24h0m0s always denies first`+"\n", errs)

	path = file(t, "login: {ip: {by: ip, limit: 5 per 900}}\n")
	_, _, errs = call(t, "explain", path)
	require.True(t, strings.HasPrefix(errs, "guardctl:\n"+path+":1:"), errs)

	status, _, errs = call(t, "explain", path+".absent")
	require.Equal(t, statusFailed, status)
	require.Contains(t, errs, "p.yaml.absent: no such file")
}

func TestWrongUsage(t *testing.T) {
	for want, args := range map[string][]string{
		"":                                    {},
		"guardctl: unknown command \"watch\"": {"watch"},
		"guardctl: explain takes one file, not 2": {"explain", "a", "b"},
		"guardctl: explain: unknown flag -v":      {"explain", "-v"},
	} {
		status, out, errs := call(t, args...)
		require.Equal(t, statusUsage, status)
		require.Empty(t, out)
		require.True(t, strings.HasPrefix(errs, want), errs)
		require.True(t, strings.HasSuffix(errs, usage), errs)
	}
	for _, args := range [][]string{{"help"}, {"-h"}, {"explain", "--help"}} {
		status, out, errs := call(t, args...)
		require.Equal(t, statusOK, status)
		require.Equal(t, usage, out)
		require.Empty(t, errs)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestWhatCannotBeSaidFails(t *testing.T) {
	var errs strings.Builder
	path := file(t, "a: {r: {by: ip, limit: 5 per 1d}}")
	require.Equal(t, statusFailed, run(t.Context(), []string{"explain", path}, brokenPipe{}, &errs))
	require.Equal(t, "guardctl: broken pipe\n", errs.String())

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, statusFailed, run(ctx, []string{"explain", path}, &errs, &errs))
	require.Contains(t, errs.String(), "context canceled")
}
