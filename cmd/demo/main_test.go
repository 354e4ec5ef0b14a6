package main

import (
	"context"
	"flag"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
	"authguard/internal/testserver"
)

func noEnv(string) string { return "" }

// started is a run of the program, in its own folder and on a free port.
type started struct {
	url  string
	stop func() error
}

func start(t *testing.T, dir string, args ...string) started {
	t.Helper()
	return startLogging(t, io.Discard, dir, args...)
}

func startLogging(t *testing.T, log io.Writer, dir string, args ...string) started {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out := new(testkit.Buffer)
	ended := make(chan error, 1)
	args = append([]string{"-addr", "127.0.0.1:0", "-db", filepath.Join(dir, "demo.db")}, args...)
	go func() { ended <- run(ctx, args, noEnv, out, log) }()
	var url string
	require.Eventually(t, func() bool {
		m := regexp.MustCompile(`listens on (http://127\.0\.0\.1:\d+),`).FindStringSubmatch(out.String())
		if m == nil {
			return false
		}
		url = m[1]
		return strings.Contains(out.String(), "admin/all") // the last line of the banner
	}, 20*time.Second, 10*time.Millisecond)
	return started{url: url, stop: func() error { cancel(); return <-ended }}
}

func TestRun(t *testing.T) {
	dir := t.TempDir()
	first, second := start(t, dir), start(t, dir) // two on one database
	for _, s := range []started{first, second} {
		resp, err := http.Post(s.url+"/login", "application/json",
			strings.NewReader(`{"email":"demo@example.com","password":"correct horse battery staple"}`))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		assert.Equal(t, http.StatusOK, resp.StatusCode)
	}
	require.NoError(t, first.stop())
	require.NoError(t, second.stop())

	for _, name := range []string{"demo.db", "demo.secret"} {
		info, err := os.Stat(filepath.Join(dir, name))
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, info.Mode().Perm(), name)
	}
}

// Two processes with one Redis are one: five guesses in all. On a busy machine an
// answer may come too late; then the attempt is refused, and its charge may stand.
func TestProcessesShareLimits(t *testing.T) {
	strict := filepath.Join(t.TempDir(), "strict.yaml")
	require.NoError(t, os.WriteFile(strict, []byte("login: {account: {by: account, limit: 5 per 15m, counts: failures, on_outage: deny}}\n"), 0o600))
	for _, shared := range []string{"-redis=redis://" + testserver.Redis(t), "-memcached=" + testserver.Memcached(t)} {
		guessInTurn(t, t.TempDir(), shared, "-policies="+strict)
	}
}

func guessInTurn(t *testing.T, dir string, shared ...string) {
	shared = append(shared, "-secret-file="+filepath.Join(dir, "secret"))
	services := []started{start(t, dir, shared...), start(t, dir, shared...)}
	got := map[int]int{}
	for i := 0; got[http.StatusTooManyRequests] == 0; i++ {
		require.Less(t, i, 50)
		resp, err := http.Post(services[i%2].url+"/login", "application/json", strings.NewReader(`{"email":"demo@example.com","password":"wrong"}`))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		got[resp.StatusCode]++
	}
	require.LessOrEqual(t, got[http.StatusUnauthorized], 5)
	require.GreaterOrEqual(t, got[http.StatusUnauthorized]+got[http.StatusServiceUnavailable], 5)
	for _, s := range services {
		require.NoError(t, s.stop())
	}
}

// An outage must not keep a process from starting, whose presets then count in its
// memory; two secrets on one server are named.
func TestWhatIsSaidOfTheSharedStoreAtTheStart(t *testing.T) {
	addr, dir := testserver.Redis(t), t.TempDir()
	secrets := map[string]string{"a": strings.Repeat("a", 32), "b": strings.Repeat("b", 32)}
	said := func(shared, name string, more ...string) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, []byte(secrets[name]), 0o600))
		log := new(testkit.Buffer)
		o, err := parseOptions(append([]string{shared, "-secret-file=" + file}, more...), noEnv, log)
		require.NoError(t, err)
		previous, err := loadPrevious(o.previousSecret, o.log)
		require.NoError(t, err)
		store, err := openStore(t.Context(), o, []byte(secrets[name]), previous)
		require.NoError(t, err)
		store.close()
		require.NotContains(t, log.String(), secrets[name])
		return log.String()
	}
	require.NotContains(t, said("-redis=redis://"+addr, "a"), "another secret")
	require.NotContains(t, said("-redis=redis://"+addr, "a"), "another secret")
	first := said("-redis=redis://"+addr, "b")
	require.Contains(t, first, "processes with another secret share this server")
	require.Contains(t, first, "no persistence")
	require.NotContains(t, said("-redis=redis://"+addr, "b"), "another secret", "after a change of the secret it is said once")
	require.Contains(t, said("-redis=redis://"+addr, "a"), "another secret")
	rotated := said("-redis=redis://"+addr, "b", "-previous-secret-file="+filepath.Join(dir, "a"))
	require.NotContains(t, rotated, "another secret")
	require.Contains(t, rotated, "the secret is being replaced")
	require.NotContains(t, said("-redis=redis://"+addr, "b"), "another secret")
	require.Contains(t, said("-redis=redis://127.0.0.1:1", "a"), "does not answer")

	cache := "-memcached=" + testserver.Memcached(t)
	require.NotContains(t, said(cache, "a"), "another secret")
	require.Contains(t, said(cache, "b"), "another secret")
	require.Contains(t, said("-memcached=127.0.0.1:1", "a"), "does not answer")

	log := new(testkit.Buffer)
	o, err := parseOptions([]string{"-instances", "3"}, noEnv, log)
	require.NoError(t, err)
	_, err = openStore(t.Context(), o, nil, nil)
	require.NoError(t, err)
	require.Contains(t, log.String(), "each of the instances admits the whole of every limit")
}

func TestRunRefuses(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.yaml")
	require.NoError(t, os.WriteFile(bad, []byte("login: {ip: {by: ip, limit: 5 per 900}}\n"), 0o600))
	short := filepath.Join(dir, "short")
	require.NoError(t, os.WriteFile(short, []byte("secret\n"), 0o600))
	nowhere := filepath.Join(dir, "nowhere")
	require.NoError(t, os.Symlink("missing", nowhere))
	db := filepath.Join(dir, "demo.db")
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	for want, args := range map[string][]string{
		"needs a mail transport":    {"-addr", "0.0.0.0:0"},
		"a mail transport, which":   {"-addr", ":0"},
		"another with -addr":        {"-addr", busy.Addr().String()},
		"-addr: address 99999":      {"-addr", "127.0.0.1:99999"},
		"another place with -db":    {"-addr", "127.0.0.1:0", "-db", filepath.Join(short, "demo.db")},
		"place with -secret-file":   {"-addr", "127.0.0.1:0", "-secret-file", filepath.Join(nowhere, "secret")},
		"this version lacks":        {"-addr", "127.0.0.1:0", "-public-url", "https://login.example.com"},
		"trusts half the world":     {"-trusted-proxies", "10.0.0.0/8,::/0"},
		"is no address":             {"-trusted-proxies", "proxy.example.com"},
		"want json or text":         {"-log", "xml"},
		"unexpected argument":       {"serve"},
		"bad.yaml:1":                {"-policies", bad},
		"no such file":              {"-addr", "127.0.0.1:0", "-previous-secret-file", short + ".absent"},
		"want at least 32":          {"-addr", "127.0.0.1:0", "-secret-file", short},
		"-redis needs -secret-file": {"-redis", "redis://127.0.0.1"},
		"-memcached needs -secret":  {"-memcached", "127.0.0.1:1"},
		"exclude each other":        {"-redis", "redis://127.0.0.1", "-memcached", "127.0.0.1:1"},
		"-memcached: ":              {"-addr", "127.0.0.1:0", "-memcached", "nowhere", "-secret-file", filepath.Join(t.TempDir(), "secret")},
		"scheme is \"http\"":        {"-addr", "127.0.0.1:0", "-redis", "http://127.0.0.1", "-secret-file", filepath.Join(t.TempDir(), "secret")},
		"invalid value \"none\"":    {"-instances", "none"},
		"want a number from 1":      {"-instances", "0"},
		"WRONGPASS":                 {"-addr", "127.0.0.1:0", "-redis", "redis://limits:wrong@" + testserver.Redis(t), "-secret-file", filepath.Join(t.TempDir(), "secret")},
	} {
		err := run(t.Context(), append([]string{"-db", db}, args...), noEnv, io.Discard, io.Discard)
		assert.ErrorContains(t, err, want)
	}
	assert.NoFileExists(t, db, "nothing was made on the way")
}

// What cannot be served is said even where the address is taken.
func TestThePublicIsRefusedBeforeListening(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer busy.Close()
	err = run(t.Context(), []string{"-addr", busy.Addr().String(), "-public-url", "https://login.example.com"}, noEnv, io.Discard, io.Discard)
	require.ErrorIs(t, err, errNoMail)
}

func TestHelpNamesTheVariables(t *testing.T) {
	help := new(testkit.Buffer)
	err := run(t.Context(), []string{"-h"}, noEnv, io.Discard, help)
	require.ErrorIs(t, err, flag.ErrHelp)
	require.Equal(t, statusOK, report(help, err))
	require.Contains(t, help.String(), "AUTHDEMO_TRUSTED_PROXIES")
	require.Contains(t, help.String(), "this version refuses it")
}

// Each error is told once, under the name of the program.
func TestReport(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	require.NoError(t, os.WriteFile(own, []byte("login: {ip: {by: ip, limit: 5 per 900}}\n"), 0o600))
	for _, tt := range []struct {
		args   []string
		status int
		said   string
	}{
		{[]string{"-nothing"}, statusUsage, "demo: flag provided but not defined: -nothing\ndemo -h lists the flags.\n"},
		{[]string{"serve"}, statusUsage, "demo: unexpected argument \"serve\"\ndemo -h lists the flags.\n"},
		{[]string{"-redis", "redis://127.0.0.1"}, statusUsage, "demo: -redis needs -secret-file: processes that share limits must share the secret that keys them\ndemo -h lists the flags.\n"},
		{[]string{"-addr", ":0"}, statusFailed, "demo: " + errNoMail.Error() + "\n"},
		{[]string{"-policies", own}, statusFailed, "demo:\n" + own + ":1:29: login/ip: limit \"5 per 900\": 900 has no unit, write 900s\n"},
	} {
		stderr := new(testkit.Buffer)
		require.Equal(t, tt.status, report(stderr, run(t.Context(), tt.args, noEnv, io.Discard, stderr)), tt.args)
		require.Equal(t, tt.said, stderr.String(), tt.args)
	}
	require.Equal(t, statusOK, report(io.Discard, nil))
}

func TestASecretThatOthersCanReadIsReported(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.secret")
	log := new(testkit.Buffer)
	logger := slog.New(slog.NewTextHandler(log, nil))
	first, err := loadSecret(path, logger)
	require.NoError(t, err)
	require.Empty(t, log.String())
	require.NoError(t, os.Chmod(path, 0o640))
	again, err := loadSecret(path, logger)
	require.NoError(t, err)
	require.Equal(t, first, again)
	require.Contains(t, log.String(), "level=WARN")
	require.Contains(t, log.String(), "chmod 600")
}

// The commands of the banner, in its order, end with the account's new password.
func TestTheBannerNamesAllSteps(t *testing.T) {
	out := new(testkit.Buffer)
	printBanner(out, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, &options{}, nil)
	require.Regexp(t, `(?s)/login --json.*/api/keys.*/login --json.*/password-reset --json.*/dev/outbox\n.*/password-reset/confirm --json '\{"token":"TOKEN","password":"[a-z ]+"\}'`, out.String())
}

func TestEnvironment(t *testing.T) {
	env := map[string]string{
		"AUTHDEMO_ADDR":            "127.0.0.1:1",
		"AUTHDEMO_DB":              "/data/accounts.sqlite",
		"AUTHDEMO_TRUSTED_PROXIES": "10.0.0.1, 172.16.9.9/12 ,fd00::/8",
		"AUTHDEMO_LOG":             "json",
	}
	o, err := parseOptions([]string{"-addr", "127.0.0.1:2"}, func(name string) string { return env[name] }, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, "127.0.0.1:2", o.addr, "a flag wins over its variable")
	assert.Equal(t, "/data/accounts.sqlite", o.db)
	assert.Equal(t, "/data/accounts.secret", o.secretFile)
	assert.Equal(t, []netip.Prefix{
		netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("fd00::/8"),
	}, o.trustedProxies)

	env["AUTHDEMO_LOG"] = "xml"
	_, err = parseOptions(nil, func(name string) string { return env[name] }, io.Discard)
	require.ErrorContains(t, err, "AUTHDEMO_LOG")
}

func TestSecretIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "er", "demo.secret")
	secrets := make([][]byte, 8)
	var wg sync.WaitGroup
	for i := range secrets {
		wg.Go(func() {
			var err error
			secrets[i], err = loadSecret(path, slog.New(slog.DiscardHandler))
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	for _, s := range secrets {
		assert.Equal(t, secrets[0], s)
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, entries, 1, "nothing is left over")
}

// A new secret keeps what was counted under the one before, while the processes that
// share a server are given it one by one.
func TestASecretIsReplacedUnderWay(t *testing.T) {
	dir := t.TempDir()
	strict := filepath.Join(dir, "strict.yaml")
	require.NoError(t, os.WriteFile(strict, []byte("login: {account: {by: account, limit: 5 per 15m, counts: failures, on_outage: deny}}\n"), 0o600))
	shared := []string{"-redis=redis://" + testserver.Redis(t), "-policies=" + strict}
	secrets := [2]string{filepath.Join(dir, "first"), filepath.Join(dir, "second")}
	before := []string{"-secret-file=" + secrets[0]}
	after := []string{"-secret-file=" + secrets[1], "-previous-secret-file=" + secrets[0]}
	first := start(t, t.TempDir(), append(before, shared...)...)
	second := start(t, t.TempDir(), append(after, shared...)...)
	got := map[int]int{}
	for i := 0; got[http.StatusTooManyRequests] < 2; i++ {
		require.Less(t, i, 50)
		resp, err := http.Post([]started{first, second}[i%2].url+"/login", "application/json", strings.NewReader(`{"email":"nobody@example.com","password":"wrong"}`))
		require.NoError(t, err)
		require.NoError(t, resp.Body.Close())
		got[resp.StatusCode]++
	}
	require.LessOrEqual(t, got[http.StatusUnauthorized], 5)
	require.NoError(t, first.stop())
	require.NoError(t, second.stop())
}
