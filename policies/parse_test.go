package policies_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
	"authguard/policies"
)

func TestParseReadsEveryLawAndKey(t *testing.T) {
	got, err := policies.Parse("p.yaml", []byte(`
login:
  account: {by: account, limit: [5 per 15m, 30 per 1d], counts: failures, on_outage: deny}
  network: {by: ip/48, counter: 400 per 1h30m, effect: observe, on_outage: allow}
api:
  mixed:
    by: part:plan
    fixed: 100 per 1d12h
    refill: 3 per 1s
    bucket: 10
    limit: 1000 per 1h
    counts: attempts
    effect: silent
`))
	require.NoError(t, err)
	require.Equal(t, []guard.Policy{
		{Action: "login", Rules: []guard.Rule{
			{Name: "account", By: guard.ByAccount, Counts: guard.Failures, OnOutage: guard.OutageDeny, Limits: []limiter.Limit{
				limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute},
				limiter.SlidingWindow{Limit: 30, Window: 24 * time.Hour},
			}},
			{Name: "network", By: guard.IPPrefix(48), Effect: guard.Observe, OnOutage: guard.OutageAllow, Limits: []limiter.Limit{
				limiter.SlidingWindowCounter{Limit: 400, Window: 90 * time.Minute},
			}},
		}},
		{Action: "api", Rules: []guard.Rule{
			{Name: "mixed", By: guard.Part("plan"), Effect: guard.Silent, OnOutage: guard.OutageLocal, Limits: []limiter.Limit{
				limiter.FixedWindow{Limit: 100, Window: 36 * time.Hour},
				limiter.TokenBucket{Capacity: 10, Refill: 3, Per: time.Second},
				limiter.SlidingWindow{Limit: 1000, Window: time.Hour},
			}},
		}},
	}, got)
}

func TestParseReadsStreaksMembersAndQueues(t *testing.T) {
	got, err := policies.Parse("p.yaml", []byte(`
login:
  streak:   {by: account, shared: password, backoff: {free: 10, base: 30s, max: 1h, lock: 80}}
  spraying: {by: ip, limit: [10 per 1h, 50 per 1d], distinct: account, counts: failures}
reauth:
  streak:   {by: account, shared: password, backoff: {free: 10, base: 30s, max: 1h, lock: 80}, counts: failures}
export:
  slowly:   {by: tenant, leak: 3 per 1s, queue: 10}
  patient:  {by: tenant, backoff: {free: 1, base: 1s, factor: 10, max: 1d, forget: 1d, forget_beyond: 366d}, limit: 5 per 1h}
`))
	require.NoError(t, err)
	streak := guard.Rule{Name: "streak", By: guard.ByAccount, Shared: "password", Counts: guard.Failures, OnOutage: guard.OutageLocal, Limits: []limiter.Limit{
		limiter.Backoff{Free: 10, Base: 30 * time.Second, Factor: 2, Max: time.Hour, LockAfter: 80,
			Forget: 7 * 24 * time.Hour, ForgetBeyond: 90 * 24 * time.Hour},
	}}
	require.Equal(t, []guard.Policy{
		{Action: "login", Rules: []guard.Rule{
			streak,
			{Name: "spraying", By: guard.ByIP, Members: guard.ByAccount, Counts: guard.Failures, OnOutage: guard.OutageLocal, Limits: []limiter.Limit{
				limiter.Distinct{Limit: 10, Window: time.Hour},
				limiter.Distinct{Limit: 50, Window: 24 * time.Hour},
			}},
		}},
		{Action: "reauth", Rules: []guard.Rule{streak}},
		{Action: "export", Rules: []guard.Rule{
			{Name: "slowly", By: guard.ByTenant, OnOutage: guard.OutageLocal, Limits: []limiter.Limit{limiter.LeakyBucket{Capacity: 10, Leak: 3, Per: time.Second}}},
			{Name: "patient", By: guard.ByTenant, Counts: guard.Failures, OnOutage: guard.OutageLocal, Limits: []limiter.Limit{
				limiter.Backoff{Free: 1, Base: time.Second, Factor: 10, Max: 24 * time.Hour,
					Forget: 24 * time.Hour, ForgetBeyond: 366 * 24 * time.Hour},
				limiter.SlidingWindow{Limit: 5, Window: time.Hour},
			}},
		}},
	}, got)
	requireRoundTrip(t, got)
}

func TestParseReadsClasses(t *testing.T) {
	got, err := policies.Parse("p.yaml", []byte(`
login:
  account: {by: account, clients: untrusted, shared: s, limit: 5 per 15m}
  device:  {by: device, clients: trusted, limit: 5 per 15m}
  devices: {by: account, clients: trusted, distinct: device, limit: 5 per 15m, shared: s}
  all:     {by: ip, clients: all, limit: 5 per 15m}
`))
	require.NoError(t, err)
	five := []limiter.Limit{limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}}
	require.Equal(t, []guard.Policy{{Action: "login", Rules: []guard.Rule{
		{Name: "account", By: guard.ByAccount, Clients: guard.UntrustedClients, Shared: "s", Limits: five, OnOutage: guard.OutageLocal},
		{Name: "device", By: guard.ByDevice, Clients: guard.TrustedClients, Limits: five, OnOutage: guard.OutageLocal},
		{Name: "devices", By: guard.ByAccount, Clients: guard.TrustedClients, Members: guard.ByDevice, Shared: "s", OnOutage: guard.OutageLocal,
			Limits: []limiter.Limit{limiter.Distinct{Limit: 5, Window: 15 * time.Minute}}},
		{Name: "all", By: guard.ByIP, Limits: five, OnOutage: guard.OutageLocal},
	}}}, got)
	requireRoundTrip(t, got)
}

func TestParseReportsAllErrorsInTheOrderOfTheFile(t *testing.T) {
	_, err := policies.Parse("p.yaml", []byte(`
login:
  account: {by: acount, limit: [0 per 15m, 5 per 900], count: failures}
  ip:      {counter: 100 per 1h, effect: drop}
Api:
  key: {by: api_key, bucket: 10}
`))
	require.EqualError(t, err, strings.Join([]string{
		`p.yaml:3:17: login/account: by is "acount", did you mean account?`,
		`p.yaml:3:33: login/account: limit "0 per 15m": 0 is out of range, want 1 to 1000000`,
		`p.yaml:3:44: login/account: limit "5 per 900": 900 has no unit, write 900s`,
		`p.yaml:3:56: login/account: unknown key "count", did you mean counts?`,
		`p.yaml:4:3: login/ip has no by, want account, ip, ip/BITS with 32 to 128 bits, ip+account, device, api_key, tenant, global or part:NAME`,
		`p.yaml:4:42: login/ip: effect is "drop", want deny, challenge, silent or observe`,
		`p.yaml:5:1: action "Api": want 1 to 32 of a-z, 0-9 and _`,
		`p.yaml:6:30: Api/key: bucket 10 has no refill, want for instance refill: 1 per 1s`,
	}, "\n"))
}

func TestParseStopsReportingAtTwenty(t *testing.T) {
	lines := func(n int) []string {
		_, err := policies.Parse("p.yaml", []byte("a:\n"+strings.Repeat("  X: {by: ip, limit: 1 per 1s}\n", n)))
		return strings.Split(err.Error(), "\n")
	}
	require.Len(t, lines(20), 20) // one bad name, nineteen repetitions
	require.Contains(t, lines(20)[19], "p.yaml:21:3: a has the key")
	require.Len(t, lines(90), 20)
	require.Equal(t, "p.yaml:21:3: 71 more errors from here on", lines(90)[19])
}

func TestParseRefusesMoreThanOneMiB(t *testing.T) {
	file := "login: {ip: {by: ip, limit: 5 per 15m}}\n#"
	full := file + strings.Repeat("x", 1<<20-len(file))
	_, err := policies.Parse("p.yaml", []byte(full))
	require.NoError(t, err)
	_, err = policies.Parse("p.yaml", []byte(full+"x"))
	require.EqualError(t, err, "p.yaml:1:1: file is larger than 1 MiB")
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.yaml")
	_, err := policies.Load(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, path)

	require.NoError(t, os.WriteFile(path, []byte("login: {ip: {by: ip, limit: 5 per 15m}}"), 0o600))
	got, err := policies.Load(path)
	require.NoError(t, err)
	require.Equal(t, "login/ip  5 per 15m0s  by ip  attempts  deny\n", policies.Format(got))

	require.NoError(t, os.WriteFile(path, []byte("login: 5"), 0o600))
	_, err = policies.Load(path)
	require.EqualError(t, err, path+":1:8: login is 5, want a map of rules")

	require.NoError(t, os.WriteFile(path, make([]byte, 2<<20), 0o600))
	_, err = policies.Load(path)
	require.EqualError(t, err, path+":1:1: file is larger than 1 MiB")
}
