package main

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/internal/testserver"
	"authguard/limiter/redisstore"
	"authguard/policies"
)

// The right to be forgotten: of everything that an application has counted, under two
// secrets, a name and an id, presets and an own file, no key of the account is left.
func TestErase(t *testing.T) {
	url, dir := "redis://"+testserver.Redis(t), t.TempDir()
	secret := func(name string) (path string, secret []byte) {
		path, secret = filepath.Join(dir, name), []byte(strings.Repeat(name[:1], 32))
		require.NoError(t, os.WriteFile(path, append(secret, '\n'), 0o600))
		return path, secret
	}
	oldFile, old := secret("old")
	newFile, renewed := secret("new")
	otherFile, _ := secret("third")
	own := file(t, "login: {person: {by: account, limit: 3 per 1h, counts: failures}}\n")
	client, err := redisstore.NewClient(url)
	require.NoError(t, err)
	defer client.Close()
	store, err := redisstore.New(redisstore.Config{Client: client, Timeout: 5 * time.Second})
	require.NoError(t, err)
	loaded, err := policies.Load(own)
	require.NoError(t, err)

	fail := func(account, id string) {
		addr := netip.MustParseAddr("198.51.100.1")
		for _, ps := range [][]guard.Policy{policies.Default(), policies.Override(policies.Default(), loaded)} {
			for _, c := range []guard.Config{{Secret: old}, {Secret: renewed, PreviousSecret: old}} {
				c.Store, c.Policies = store, ps
				c.Resolve = func(context.Context, string) (guard.Account, error) { return guard.Account{ID: id}, nil }
				g, err := guard.New(c)
				require.NoError(t, err)
				for _, action := range []string{"login", "otp", "password_reset"} {
					_, err := g.Check(t.Context(), guard.Attempt{Action: action, Account: account, IP: addr})
					require.NoError(t, err)
					addr = addr.Next()
				}
			}
		}
	}
	keys := func() int {
		n, err := client.DBSize(t.Context()).Result()
		require.NoError(t, err)
		return int(n)
	}
	fail("eve@example.com", "8") // and so all that is kept of the addresses
	before := keys()
	fail("bob@example.com", "")
	fail("bob@example.com", "7")
	require.Greater(t, keys(), before+20)
	own1, err := guard.Fingerprint(renewed)
	require.NoError(t, err)
	_, err = store.Mark(t.Context(), own1)
	require.NoError(t, err)

	status, _, errs := call(t, "erase", "-redis", url, "-secret-file", otherFile, "bob@example.com")
	require.Equal(t, statusFailed, status)
	require.Contains(t, errs, "have another secret ("+own1+")")

	args := []string{"erase", "-redis", url, "-secret-file", newFile, "-previous-secret-file", oldFile, "-policies", own, "-id", "7", "BOB@example.com"}
	status, out, errs := call(t, args...)
	require.Equal(t, statusOK, status, errs)
	require.Regexp(t, `^Erased. Of the account's limits [1-9]\d* had counted something.\n$`, out)
	require.Equal(t, before+1, keys(), "the mark, and eve's")
	status, out, errs = call(t, args...)
	require.Equal(t, statusOK, status, errs)
	require.Equal(t, "Erased. Of the account's limits 0 had counted something.\n", out)
	require.NotContains(t, errs, "bob")

	at := []string{"-redis", url, "-secret-file", newFile, "-names", "id"}
	ok(t, append([]string{"block", "7", "-for", "1h"}, at...)...)
	out = ok(t, args...)
	require.Contains(t, out, "limits 0 had counted something.\nIt is blocked by an operator", "a block counts nothing")
	require.Contains(t, ok(t, append([]string{"list"}, at...)...), "by an operator")
}

func TestEraseNeedsToKnowWhoseAndWhere(t *testing.T) {
	path := file(t, strings.Repeat("s", 32))
	for want, args := range map[string][]string{
		"erase needs -redis":                {"-secret-file", path, "bob"},
		"erase needs -secret-file":          {"-redis", "redis://127.0.0.1:1", "bob"},
		"erase takes one account, not 0":    {"-redis", "redis://127.0.0.1:1", "-secret-file", path},
		"erase takes one account, not 2":    {"-redis", "redis://127.0.0.1:1", "-secret-file", path, "a", "b"},
		"erase: flag provided but not defi": {"-all"},
	} {
		status, _, errs := call(t, append([]string{"erase"}, args...)...)
		require.Equal(t, statusUsage, status)
		require.Contains(t, errs, want)
	}
	for want, args := range map[string][]string{
		"no such file":       {"-redis", "redis://127.0.0.1:1", "-secret-file", path + ".absent", "bob"},
		"-redis: ":           {"-redis", "http://127.0.0.1:1", "-secret-file", path, "bob"},
		"connection refused": {"-redis", "redis://127.0.0.1:1", "-secret-file", path, "bob"},
		"is 3 bytes":         {"-redis", "redis://127.0.0.1:1", "-secret-file", file(t, "abc"), "bob"},
	} {
		status, _, errs := call(t, append([]string{"erase"}, args...)...)
		require.Equal(t, statusFailed, status)
		require.Contains(t, errs, want)
	}
}
