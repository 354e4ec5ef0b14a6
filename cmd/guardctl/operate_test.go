package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/authdemo"
	"authguard/guard"
	"authguard/guard/adminapi"
	"authguard/internal/testserver"
	"authguard/limiter/breaker"
	"authguard/limiter/denycache"
	"authguard/limiter/memstore"
	"authguard/limiter/redisstore"
	"authguard/policies"
)

const token = "the operators' token"

var secret = []byte("a secret of thirty-two bytes !!!")

// demo is the real demo, with the API under /admin and limits in memory.
func demo(t *testing.T) *httptest.Server {
	t.Helper()
	svc, err := authdemo.New(t.Context(), authdemo.Config{
		DB: filepath.Join(t.TempDir(), "demo.db"), Store: memstore.New(memstore.Config{}), Secret: secret,
		Policies: policies.Default(), Development: true, AdminToken: token,
	})
	require.NoError(t, err)
	server := httptest.NewServer(svc)
	t.Cleanup(func() { server.Close(); svc.Close(context.Background()) })
	t.Setenv("AUTHGUARD_URL", server.URL+"/admin")
	t.Setenv("AUTHGUARD_TOKEN", token)
	return server
}

func guess(t *testing.T, server *httptest.Server, password string) int {
	t.Helper()
	body := fmt.Sprintf(`{"email":%q,"password":%q}`, authdemo.DemoEmail, password)
	resp, err := http.Post(server.URL+"/login", "application/json", strings.NewReader(body))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	return resp.StatusCode
}

func ok(t *testing.T, args ...string) string {
	t.Helper()
	status, out, errs := call(t, args...)
	require.Equal(t, statusOK, status, errs)
	require.Empty(t, errs)
	return out
}

// An operator's night: why was I refused, who else is, open it, close another.
func TestAnOperatorAtTheDemo(t *testing.T) {
	server := demo(t)
	require.Equal(t, "nobody is refused now\n", ok(t, "list"))
	for range 5 {
		require.Equal(t, http.StatusUnauthorized, guess(t, server, "wrong"))
	}
	require.Equal(t, http.StatusTooManyRequests, guess(t, server, authdemo.DemoPassword))

	for range 20 { // which consumes nothing
		out := ok(t, "inspect", "login", "Demo@Example.com")
		require.Regexp(t, `(?m)^login of Demo@Example\.com
  unknown devices: refused for 1\dm\d+s, until [-0-9]+ [:0-9]+ UTC, by account
  known devices:   not refused
$`, out)
		require.Regexp(t, `(?m)^  account +by account  unknown devices  5 of 5 per 15m0s +refuses for 1\dm\d+s, until .* UTC$`, out)
		require.Regexp(t, `(?m)^  account +by account  unknown devices  5 of 30 per 24h0m0s +admits$`, out)
		require.Regexp(t, `(?m)^  devices +by account  known devices .* whole$`, out)
	}
	require.Regexp(t, `^login/account  demo@example\.com  5 of 5 per 15m0s  refuses for 1\dm\d+s, until .* UTC\n$`, ok(t, "list"))

	require.Equal(t, "unlocked demo@example.com for login\n", ok(t, "unlock", "demo@example.com", "login"))
	require.Equal(t, http.StatusOK, guess(t, server, authdemo.DemoPassword))
	require.Equal(t, "nobody is refused now\n", ok(t, "list"))

	require.Equal(t, "blocked demo@example.com for 7d; of two blocks the longer one stands\n", ok(t, "block", "-for", "7d", "demo@example.com"))
	require.Equal(t, http.StatusTooManyRequests, guess(t, server, authdemo.DemoPassword))
	require.Contains(t, ok(t, "inspect", "login", "demo@example.com"), "known devices:   refused for 7d, until")
	require.Equal(t, "blocked 203.0.113.9 for 1h0m0s; of two blocks the longer one stands\n", ok(t, "block", "-ip", "203.0.113.9", "-until", time.Now().Add(time.Hour).Format(time.RFC3339Nano)))
	out := ok(t, "list", "-n", "10")
	require.Regexp(t, `(?m)^blocked account  demo@example\.com  by an operator  refuses for 7d, until .* UTC$`, out)
	require.Regexp(t, `(?m)^blocked ip +203\.0\.113\.9/32 +by an operator  refuses for `, out)
	require.Contains(t, ok(t, "list", "-n", "1"), "and perhaps more")
	require.Equal(t, "unblocked demo@example.com\n", ok(t, "unblock", "demo@example.com"))
	require.Equal(t, "unblocked 203.0.113.9\n", ok(t, "unblock", "-ip", "203.0.113.9"))
	require.Equal(t, http.StatusOK, guess(t, server, authdemo.DemoPassword))

	var report adminapi.Report
	require.NoError(t, json.Unmarshal([]byte(ok(t, "inspect", "-json", "login", "demo@example.com", "-ip", "192.0.2.1")), &report))
	require.Equal(t, "192.0.2.1", report.IP)
	require.Greater(t, len(report.Limits), 8)
	require.JSONEq(t, `{"refused":[]}`, ok(t, "list", "-json"))
	require.JSONEq(t, `{"done":"blocked"}`, ok(t, "block", "eve", "-for", "1m", "-json"))
}

func TestWhatAnOperatorGetsWrong(t *testing.T) {
	server := demo(t)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
	ok(t, "list", "-token-file", file, "-url", server.URL+"/admin/")
	for want, args := range map[string][]string{
		`no policy for this action: "logn"`:        {"inspect", "logn", "bob"},
		"has no such API":                          {"list", "-url", server.URL + "/nothing"},
		"does not answer":                          {"list", "-url", "http://127.0.0.1:1/admin"},
		"would travel in clear":                    {"list", "-url", "http://example.com/admin"},
		"-token-file: open /no/such: no such file": {"list", "-token-file", "/no/such"},
		"ip is the address that you come from":     {"block", "-ip", "127.0.0.1", "-for", "1h"},
		`login has no rule "none" by account`:      {"unlock", "bob", "login/none"},
		"none of reset_confirm's rules counts":     {"inspect", "reset_confirm", "bob"},
	} {
		status, out, errs := call(t, args...)
		require.Equal(t, statusFailed, status, errs)
		require.Empty(t, out)
		require.Contains(t, errs, want)
		require.NotContains(t, errs, token)
	}
	for want, args := range map[string][]string{
		"inspect: want an action":                        {"inspect"},
		"inspect: want an account, or -ip":               {"inspect", "login"},
		`inspect: unexpected argument "x"`:               {"inspect", "login", "bob", "x"},
		`list: unexpected argument "x"`:                  {"list", "x"},
		"list: -n is 0":                                  {"list", "-n", "0"},
		"unlock: want an account":                        {"unlock"},
		"block: want an account or -ip, one":             {"block", "-for", "1h"},
		"block: want an account or -ip, one of them":     {"block", "bob", "-ip", "192.0.2.1", "-for", "1h"},
		"block: want -for or -until":                     {"block", "bob"},
		"block: want -for or -until, of 1s to 366d":      {"block", "bob", "-for", "367d"},
		"block: want -for or -until, of 1s to 366d from": {"block", "bob", "-until", "2001-01-01T00:00:00Z"},
		"block: -for and -until exclude":                 {"block", "bob", "-for", "1h", "-until", "2101-01-01T00:00:00Z"},
		`block: invalid value "3600" for flag -for`:      {"block", "bob", "-for", "3600"},
		`unblock: invalid value "x" for flag -ip`:        {"unblock", "-ip", "x"},
		"unblock: flag provided but not defined: -for":   {"unblock", "bob", "-for", "1h"},
		"list: -redis needs -secret-file":                {"list", "-redis", "redis://127.0.0.1"},
		"list: -secret-file, -policies and -names need":  {"list", "-secret-file", "x"},
		"list: -url and -token-file go with":             {"list", "-url", "http://127.0.0.1", "-redis", "redis://127.0.0.1"},
		"inspect: -redis needs -names where an account":  {"inspect", "login", "bob", "-redis", "redis://127.0.0.1", "-secret-file", "x"},
		"unlock: -redis needs -names":                    {"unlock", "bob", "-redis", "redis://127.0.0.1", "-secret-file", "x"},
		`list: -names is "x"`:                            {"list", "-redis", "redis://127.0.0.1", "-names", "x"},
	} {
		status, out, errs := call(t, args...)
		require.Equal(t, statusUsage, status, errs)
		require.Empty(t, out)
		require.True(t, strings.HasPrefix(errs, "guardctl: "+want), "%q, want %q", errs[:min(len(errs), 120)], want)
	}
	t.Setenv("AUTHGUARD_TOKEN", "")
	_, _, errs := call(t, "list")
	require.Contains(t, errs, "no token")
	t.Setenv("AUTHGUARD_TOKEN", "not the operators' token")
	_, _, errs = call(t, "list")
	require.Contains(t, errs, "does not take this token")
}

// A name that somebody chose moves no cursor and adds no line.
func TestHostileNamesAreShownHarmlessly(t *testing.T) {
	for in, want := range map[string]string{
		"bob@example.com": "bob@example.com", "é b": "é b", "": `""`,
		"\x1b[2J": `"\x1b[2J"`, "a\nnobody is refused": `"a\nnobody is refused"`, "\u202eevil": `"\u202eevil"`, `"bob"`: `"\"bob\""`, "\xff": `"\xff"`,
	} {
		require.Equal(t, want, shown(in))
	}
}

// stack is a guard of one instance over a shared server, as applications put it
// together: a breaker, and a cache of denials whose channel is live.
func stack(t *testing.T, client redis.UniversalClient) (*guard.Guard, *denycache.Store) {
	t.Helper()
	shared, err := redisstore.New(redisstore.Config{Client: client, Timeout: 10 * time.Second})
	require.NoError(t, err)
	broken, err := breaker.New(breaker.Config{Store: shared})
	require.NoError(t, err)
	cache, err := denycache.New(denycache.Config{Store: broken, Channel: shared, Settle: time.Millisecond})
	require.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); cache.Run(ctx) }()
	t.Cleanup(func() { stop(); <-ended })
	require.Eventually(t, func() bool { return cache.Stats().Live }, 20*time.Second, 10*time.Millisecond)
	g, err := guard.New(guard.Config{Store: cache, Secret: secret, Policies: policies.Default(), Instances: 2})
	require.NoError(t, err)
	return g, cache
}

func secretFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, append(secret, '\n'), 0o600))
	return file
}

var here = netip.MustParseAddr("198.51.100.9")

func refused(g *guard.Guard, account string) bool {
	pass, err := g.Check(context.Background(), guard.Attempt{Action: "login", Account: account, IP: here})
	if err == nil {
		pass.Cancel(context.Background())
	}
	return err != nil && strings.Contains(err.Error(), "/"+guard.BlockedRule)
}

// LK-07: what guardctl changes in the Redis, every instance sees, behind its cache of
// denials, too: a block with the next attempt, its end within the channel's time.
func TestEveryInstanceSeesABlock(t *testing.T) {
	single := testserver.Redis(t)
	cluster := testserver.Cluster(t).Addrs()
	for name, url := range map[string]string{"single": "redis://" + single, "cluster": "redis+cluster://" + strings.Join(cluster, ",")} {
		t.Run(name, func(t *testing.T) {
			client, err := redisstore.NewClient(url)
			require.NoError(t, err)
			t.Cleanup(func() { client.Close() })
			one, cache := stack(t, client)
			two, _ := stack(t, client)
			instances := []*guard.Guard{one, two}
			t.Setenv("AUTHGUARD_REDIS", url)
			at := []string{"-secret-file", secretFile(t), "-names", "folded"}
			do := func(args ...string) string { return ok(t, append(args, at...)...) }
			for range 3 {
				for _, g := range instances {
					require.False(t, refused(g, "bob"))
				}
				do("block", "bob", "-for", "1h")
				for range 5 { // until caches answer by themselves
					for _, g := range instances {
						require.True(t, refused(g, "Bob"), "at once")
					}
					time.Sleep(2 * time.Millisecond)
				}
				do("unblock", "bob")
				for _, g := range instances {
					require.Eventually(t, func() bool { return !refused(g, "bob") }, 10*time.Second, time.Millisecond)
				}
			}
			require.NotZero(t, cache.Stats().Local, "the cache answered by itself")
			do("block", "-ip", here.String(), "-for", "1h")
			require.True(t, refused(instances[0], "bob"))
			require.True(t, refused(instances[1], "eve"))
			require.Contains(t, do("inspect", "login", "bob", "-ip", here.String()), "refused for 1h")
			require.Contains(t, do("list"), here.String())
			do("unblock", "-ip", here.String())
			require.Eventually(t, func() bool { return !refused(one, "carl") && !refused(two, "carl") }, 10*time.Second, time.Millisecond)

			for range 5 {
				pass, err := instances[0].Check(t.Context(), guard.Attempt{Action: "login", Account: "bob", IP: here})
				require.NoError(t, err)
				require.NoError(t, pass.Fail(t.Context()))
			}
			require.EventuallyWithT(t, func(c *assert.CollectT) {
				assert.Contains(c, do("list"), "login/account  bob")
			}, 10*time.Second, 10*time.Millisecond)
			require.Contains(t, do("inspect", "login", "bob"), "by account")
			do("unlock", "bob")
			require.Equal(t, "nobody is refused now\n", do("list"))
			requireNothingInClear(t, client)
		})
	}
}

// OB-04: no key, member or label has a name or an address in it.
func requireNothingInClear(t *testing.T, client redis.UniversalClient) {
	look := func(ctx context.Context, node *redis.Client) error {
		for keys := node.Scan(ctx, 0, "*", 1000).Iterator(); keys.Next(ctx); {
			text := keys.Val()
			if dump, err := node.Dump(ctx, keys.Val()).Result(); err == nil {
				text += dump
			}
			for _, clear := range []string{"bob", "198.51"} {
				if strings.Contains(text, clear) {
					return fmt.Errorf("%q has %q in it", text, clear)
				}
			}
		}
		return nil
	}
	if cluster, ok := client.(*redis.ClusterClient); ok {
		require.NoError(t, cluster.ForEachMaster(t.Context(), look))
		return
	}
	require.NoError(t, look(t.Context(), client.(*redis.Client)))
}

// Accounts that a resolver knows are found by its id.
func TestAccountsByID(t *testing.T) {
	url := "redis://" + testserver.Redis(t)
	client, err := redisstore.NewClient(url)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	store, err := redisstore.New(redisstore.Config{Client: client, Timeout: 10 * time.Second})
	require.NoError(t, err)
	g, err := guard.New(guard.Config{Store: store, Secret: secret, Policies: policies.Default(),
		Resolve: func(context.Context, string) (guard.Account, error) { return guard.Account{ID: "User-7"}, nil }})
	require.NoError(t, err)
	at := []string{"-redis", url, "-secret-file", secretFile(t)}
	ok(t, append([]string{"block", "bob", "-for", "1h", "-names", "folded"}, at...)...)
	require.False(t, refused(g, "bob"), "a name is not what counts")
	ok(t, append([]string{"list"}, at...)...)
	ok(t, append([]string{"block", "User-7", "-for", "1h", "-names", "id"}, at...)...)
	require.True(t, refused(g, "bob"))
}

// A Redis with 100,000 keys: inspect and list look at what they need, by name.
func TestAnswersOnAFullRedis(t *testing.T) {
	url := "redis://" + testserver.Redis(t)
	client, err := redisstore.NewClient(url)
	require.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	ctx := t.Context()
	const keys = 100_000
	for from := 0; from < keys; from += 5_000 {
		pipe := client.Pipeline()
		for i := range 5_000 {
			pipe.Set(ctx, fmt.Sprintf("ag:{%016d}abcdefgh", from+i), strings.Repeat("x", 40), time.Hour)
		}
		_, err := pipe.Exec(ctx)
		require.NoError(t, err)
	}
	store, err := redisstore.New(redisstore.Config{Client: client, Timeout: 10 * time.Second})
	require.NoError(t, err)
	g, err := guard.New(guard.Config{Store: store, Secret: secret, Policies: policies.Default()})
	require.NoError(t, err)
	const people = 300
	for i := range people { // each with what it takes to be listed
		for range 5 {
			pass, err := g.Check(ctx, guard.Attempt{Action: "login", Account: fmt.Sprint("user ", i), IP: netip.AddrFrom4([4]byte{10, byte(i >> 4), byte(i), 1})})
			require.NoError(t, err)
			require.NoError(t, pass.Fail(ctx))
		}
	}
	at := []string{"-redis", url, "-secret-file", secretFile(t), "-names", "folded"}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		list, err := g.Refused(ctx, 10_000)
		require.NoError(c, err)
		require.Len(c, list, people)
	}, 20*time.Second, 20*time.Millisecond)
	size, err := client.DBSize(ctx).Result()
	require.NoError(t, err)
	require.Greater(t, size, int64(keys))
	require.NoError(t, client.ConfigResetStat(ctx).Err())

	for _, args := range [][]string{{"inspect", "login", "user 7", "-ip", "192.0.2.1"}, {"list", "-n", "100"}, {"list", "-n", "10000"}} {
		best := time.Hour
		for range 5 {
			began := time.Now()
			out := ok(t, append(args, at...)...)
			best = min(best, time.Since(began))
			require.Contains(t, out, "user ")
		}
		t.Logf("guardctl %s: %v on %d keys", strings.Join(args, " "), best, size)
		require.Less(t, best, 2*time.Second) // 100 ms on a machine that has nothing else to do
	}
	stats, err := client.Info(ctx, "commandstats").Result()
	require.NoError(t, err)
	require.Contains(t, stats, "cmdstat_eval")
	for _, command := range []string{"keys", "scan", "sscan", "hscan", "zscan", "randomkey", "sort"} {
		require.NotContains(t, stats, "cmdstat_"+command+":")
	}
}
