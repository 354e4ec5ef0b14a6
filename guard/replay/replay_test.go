package replay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/recording"
	"authguard/guard/replay"
	"authguard/internal/testkit"
	"authguard/limiter/memstore"
	"authguard/policies"
)

var ctx = context.Background()

// site is a guard that records, with a clock of its own.
type site struct {
	*guard.Guard
	clock *testkit.Clock
	tape  *recording.Recorder
	dir   string
}

func newSite(t *testing.T, ps []guard.Policy) *site {
	t.Helper()
	s := &site{clock: testkit.NewClock(time.Unix(1_800_000_000, 0)), dir: t.TempDir()}
	var err error
	s.tape, err = recording.Open(recording.Config{Dir: s.dir})
	require.NoError(t, err)
	t.Cleanup(func() { s.tape.Close() })
	s.Guard, err = guard.New(guard.Config{
		Store: memstore.New(memstore.Config{Now: s.clock.Now}), Secret: []byte(strings.Repeat("s", 32)),
		Policies: ps, Recorder: s.tape, Now: s.clock.Now,
		Resolve: func(_ context.Context, name string) (guard.Account, error) {
			if strings.HasPrefix(name, "known") {
				return guard.Account{ID: name}, nil
			}
			return guard.Account{}, nil
		},
	})
	require.NoError(t, err)
	return s
}

// try attempts once, a second later, with the right secret or a wrong one.
func (s *site) try(t *testing.T, account, addr string, right bool) bool {
	t.Helper()
	s.clock.Advance(time.Second)
	ok, err := s.Do(ctx, guard.Attempt{Action: "login", Account: account, IP: netip.MustParseAddr(addr)},
		func(context.Context, *guard.Pass) (bool, error) { return right, nil })
	if errors.As(err, new(*guard.Denied)) {
		return false
	}
	require.NoError(t, err)
	require.Equal(t, right, ok)
	return true
}

// replayed ends the recording and tries ps on it.
func (s *site) replayed(t *testing.T, ps []guard.Policy) *replay.Report {
	t.Helper()
	require.NoError(t, s.tape.Close())
	require.Zero(t, s.tape.Dropped())
	return report(t, ps, s.dir)
}

func report(t *testing.T, ps []guard.Policy, names ...string) *replay.Report {
	t.Helper()
	log, err := recording.OpenReader(names...)
	require.NoError(t, err)
	defer log.Close()
	r, err := replay.Run(ctx, log, ps)
	require.NoError(t, err)
	return r
}

func parse(t *testing.T, text string) []guard.Policy {
	t.Helper()
	ps, err := policies.Parse("p.yaml", []byte(text))
	require.NoError(t, err)
	return ps
}

// The policies of the recording refuse again exactly what they refused then: every
// preset, known devices, IPv6 networks, streaks, locks, unlocks, full gates and all.
func TestTheSamePoliciesRefuseTheSame(t *testing.T) {
	s := newSite(t, policies.Default())
	random := rand.New(rand.NewPCG(1, 2))
	devices := map[string]string{}
	type count struct{ attempts, refused int }
	want := map[string]*count{}
	for range 1800 {
		s.clock.Advance(time.Duration(random.IntN(40_000)) * time.Millisecond)
		account := fmt.Sprintf("%s-%d@example.com", []string{"known", "unknown"}[random.IntN(2)], random.IntN(3))
		a := guard.Attempt{
			Account: account,
			Action:  []string{"login", "login", "login", "login", "reauth", "otp", "password_reset", "signup", "api"}[random.IntN(9)],
			IP:      netip.MustParseAddr([]string{"198.51.100.9", "::ffff:198.51.100.9", "198.51.100.10", "2001:db8:1:1::1", "2001:db8:1:1::2", "2001:db8:1:200::1", "2001:db9::1"}[random.IntN(7)]),
			APIKey:  "key", Tenant: "t",
		}
		if random.IntN(4) == 0 {
			a.Device = devices[account]
		}
		if random.IntN(20) == 0 {
			a.IP = netip.Addr{}
		}
		if want[a.Action] == nil {
			want[a.Action] = &count{}
		}
		want[a.Action].attempts++
		pass, err := s.Check(ctx, a)
		if err != nil {
			require.ErrorAs(t, err, new(*guard.Denied))
			want[a.Action].refused++
			continue
		}
		switch n := random.IntN(60); {
		case n == 0:
			require.NoError(t, pass.Cancel(ctx))
		case n == 1:
			require.NoError(t, pass.Shed(ctx))
		case n == 2:
			require.NoError(t, s.Unlock(ctx, account))
			require.NoError(t, pass.Fail(ctx))
		case n == 3:
			require.NoError(t, s.Unlock(ctx, account, "login/streak", "reauth"))
			require.NoError(t, pass.Fail(ctx))
		case n < 10:
			require.NoError(t, pass.Succeed(ctx))
			if strings.HasPrefix(account, "known") {
				devices[account], _, err = s.TrustDevice(guard.Account{ID: account}, a.Device)
				require.NoError(t, err)
			}
		default:
			require.NoError(t, pass.Fail(ctx))
		}
	}
	r := s.replayed(t, policies.Default())
	refused := 0
	for _, a := range r.Actions {
		n := want[a.Action]
		if n == nil {
			require.Zero(t, a.Attempts)
			continue
		}
		require.Equal(t, n.attempts, a.Attempts, a.Action)
		require.Equal(t, n.refused, a.RefusedThen, a.Action)
		require.Equal(t, n.refused, a.Both, a.Action)
		require.Zero(t, a.OnlyNow, a.Action)
		require.Zero(t, a.OnlyThen, a.Action)
		for _, rule := range a.Rules {
			require.Equal(t, rule.Then, rule.Refused, a.Action+"/"+rule.Name)
		}
		refused += a.RefusedThen
	}
	require.Greater(t, refused, 200)
	require.Equal(t, r.String(), report(t, policies.Default(), s.dir).String(), "the same each time")
}

// What a stricter policy costs owners and what it spares, on a recording without one.
func TestAStricterPolicyIsTold(t *testing.T) {
	s := newSite(t, parse(t, "login: {flood: {by: ip, limit: 1000 per 1m}}\napi: {key: {by: api_key, limit: 9 per 1m}}"))
	for i := range 4 { // guesses at two accounts, from three addresses
		require.True(t, s.try(t, fmt.Sprintf("known-%d", i%2), fmt.Sprintf("198.51.100.%d", i%3), false))
	}
	for range 2 { // an owner who mistypes, and gets in
		require.True(t, s.try(t, "known-0", "192.0.2.1", false))
	}
	require.True(t, s.try(t, "known-0", "192.0.2.1", true))
	_, err := s.Check(ctx, guard.Attempt{Action: "api", APIKey: "k", IP: netip.MustParseAddr("192.0.2.1")})
	require.NoError(t, err)

	r := s.replayed(t, parse(t, `
login:
  account: {by: account, limit: 2 per 15m, counts: failures}
  watched: {by: account, limit: 1 per 15m, counts: failures, effect: observe}
`))
	require.Equal(t, map[string]int{"api": 1}, r.NotTried)
	require.Equal(t, `What these policies would have refused of what was recorded: of attempts that had
succeeded (owners annoyed), had failed (guesses stopped), or whose outcome nobody
knows, for they were refused then, too, or not settled. "then": denials in the
recording by the rule of that name.

Recorded from 2027-01-15T08:00:01Z to 2027-01-15T08:00:07Z.
Not tried, for the policies do not name it: api, 1 attempts.

login: 7 attempts, of which 1 had succeeded and 6 failed
                     then  now  had succeeded  had failed  unknown  accounts  addresses                 first                  last
  refused               0    3              1           2        0         1          1  2027-01-15T08:00:05Z  2027-01-15T08:00:07Z
  account               0    3              1           2        0         1          1  2027-01-15T08:00:05Z  2027-01-15T08:00:07Z
  watched (observe)     0    2              0           2        0         2          2  2027-01-15T08:00:03Z  2027-01-15T08:00:04Z
  Refused by both: 0. Only now: 3. Only then: 0, which count as failures here.
`, r.String())
}

// An attempt that was refused then never reached the check: what would have become
// of it nobody knows. Admitted now, it is charged as a failure; refused now, it is
// neither a guess stopped nor an owner annoyed.
func TestWhatWasRefusedThenIsOfUnknownOutcome(t *testing.T) {
	then := parse(t, "login: {account: {by: account, limit: 2 per 15m, counts: failures}}")
	s := newSite(t, then)
	require.True(t, s.try(t, "known-0", "192.0.2.1", false))
	require.True(t, s.try(t, "known-0", "192.0.2.1", false))
	for range 4 {
		require.False(t, s.try(t, "known-0", "192.0.2.1", true), "right, but never compared")
	}
	login := s.replayed(t, parse(t, "login: {account: {by: account, limit: 3 per 15m, counts: failures}}")).Actions[0]
	require.Equal(t, []int{6, 0, 2, 4}, []int{login.Attempts, login.Succeeded, login.Failed, login.Unknown})
	require.Equal(t, []int{1, 3, 0}, []int{login.OnlyThen, login.Both, login.OnlyNow}, "the third is charged, the fourth is too much")
	require.Equal(t, []int{3, 0, 0, 3}, []int{login.Refused.Refused, login.Refused.Succeeded, login.Refused.Failed, login.Refused.Unknown})
	require.Equal(t, 4, login.Rules[0].Then)
}

// Right passwords at one instant are in flight together, and all get in.
func TestAttemptsInFlightDoNotRefuseOneAnother(t *testing.T) {
	s := newSite(t, parse(t, "login: {account: {by: account, limit: 50 per 15m, counts: failures}}"))
	var passes []*guard.Pass
	for range 20 {
		pass, err := s.Check(ctx, guard.Attempt{Action: "login", Account: "known-0"})
		require.NoError(t, err)
		passes = append(passes, pass)
	}
	s.clock.Advance(time.Second)
	for _, pass := range passes {
		require.NoError(t, pass.Succeed(ctx))
	}
	began := time.Now()
	login := s.replayed(t, parse(t, "login: {account: {by: account, limit: 1 per 15m, counts: failures}}")).Actions[0]
	require.Equal(t, 20, login.Succeeded)
	require.Zero(t, login.Refused.Refused)
	require.Less(t, time.Since(began), time.Minute, "nobody waits in virtual time")
}

// A success after ten seconds gave nothing back, and a pass that nobody settled failed.
func TestLateAndMissingEndsKeepTheirCharge(t *testing.T) {
	s := newSite(t, parse(t, "login: {account: {by: account, limit: 50 per 15m, counts: failures}}"))
	one := guard.Attempt{Action: "login", Account: "known-0"}
	pass, err := s.Check(ctx, one)
	require.NoError(t, err)
	s.clock.Advance(11 * time.Second)
	require.NoError(t, pass.Succeed(ctx))
	_, err = s.Check(ctx, one)
	require.NoError(t, err)
	s.clock.Advance(time.Hour / 6)
	require.True(t, s.try(t, "known-0", "192.0.2.1", true))
	login := s.replayed(t, parse(t, "login: {account: {by: account, limit: 2 per 15m, counts: failures}}")).Actions[0]
	require.Equal(t, []int{2, 0, 1}, []int{login.Succeeded, login.Failed, login.Unknown})
	require.Equal(t, 1, login.Refused.Refused)
	require.Equal(t, 1, login.Refused.Succeeded, "an owner annoyed")
}

func TestRunRefusesWhatARecordingCannotAnswer(t *testing.T) {
	s := newSite(t, parse(t, "login: {flood: {by: ip, limit: 1000 per 1m}}"))
	s.try(t, "known-0", "2001:db8::1", false)
	s.try(t, "", "2001:db8::1", false)
	for text, want := range map[string]string{
		"login: {wide: {by: ip/40, limit: 5 per 1m}}":       "login/wide counts by ip/40, and a recording knows only IPv6 prefixes of 64, 32, 48, 56",
		"login: {key: {by: api_key, limit: 5 per 1m}}":      "attempts.jsonl:1: guard: the attempt lacks what a rule counts by: login/key counts by api_key",
		"login: {city: {by: 'part:city', limit: 5 per 1m}}": "attempts.jsonl:1: ",
	} {
		require.NoError(t, s.tape.Close())
		log, err := recording.OpenReader(s.dir)
		require.NoError(t, err)
		_, err = replay.Run(ctx, log, parse(t, text))
		require.ErrorContains(t, err, want)
		require.NoError(t, log.Close())
	}
	for _, prefix := range []string{"ip", "ip/32", "ip/48", "ip/56", "ip/64"} {
		r := report(t, parse(t, "login: {wide: {by: "+prefix+", limit: 1 per 1m}}"), s.dir)
		require.Equal(t, 1, r.Actions[0].Refused.Refused, prefix)
	}
	r := report(t, parse(t, "login: {account: {by: account, limit: 1 per 1m}}"), s.dir)
	require.Equal(t, 1, r.Actions[0].Impossible, "no account, and nothing else is counted")

	ended, cancel := context.WithCancel(ctx)
	cancel()
	log, err := recording.OpenReader(s.dir)
	require.NoError(t, err)
	defer log.Close()
	_, err = replay.Run(ended, log, parse(t, "login: {ip: {by: ip, limit: 1 per 1m}}"))
	require.ErrorIs(t, err, context.Canceled)
}

// Networks of the recording are networks again, none of them merged: 200 /64s in
// each of two /56s, and 3,000 IPv4 addresses.
func TestStandInsAreAsDifferentAsWhatTheyStandFor(t *testing.T) {
	var b strings.Builder
	at := time.Unix(1_800_000_000, 0)
	line := func(ip, networks string) {
		at = at.Add(time.Millisecond)
		fmt.Fprintf(&b, `{"at":%q,"is":"admitted","id":"1","action":"login","account":"a","ip":%q%s}`+"\n", at.UTC().Format(time.RFC3339Nano), ip, networks)
	}
	for i := range 3_000 {
		line(fmt.Sprint("v4 ", i), "")
	}
	for i := range 400 {
		net := i / 200 // a /56 has 256
		line(fmt.Sprint("v6 ", i), fmt.Sprintf(`,"networks":["32","48","56 %d"]`, net))
	}
	file := filepath.Join(t.TempDir(), "x.jsonl")
	require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o600))
	for by, want := range map[string]int{"ip": 0, "ip/64": 0, "ip/56": 398, "ip/48": 399, "ip/32": 399} {
		r := report(t, parse(t, "login: {r: {by: "+by+", limit: 1 per 24h}}"), file)
		require.Equal(t, want, r.Actions[0].Refused.Refused, by)
	}
}

// Two devices of one account have budgets of their own, and a stranger another.
func TestDevicesAreTheSameAgain(t *testing.T) {
	s := newSite(t, parse(t, "login: {flood: {by: ip, clients: untrusted, limit: 1000 per 1m}, devices: {by: device, clients: trusted, limit: 1000 per 1m}}"))
	cookies := make([]string, 3)
	for i := range 2 {
		var err error
		cookies[i], _, err = s.TrustDevice(guard.Account{ID: "known-0"}, "")
		require.NoError(t, err)
	}
	for i := range 9 {
		s.clock.Advance(time.Second)
		pass, err := s.Check(ctx, guard.Attempt{Action: "login", Account: "known-0", IP: netip.MustParseAddr("192.0.2.1"), Device: cookies[i%3]})
		require.NoError(t, err)
		require.Equal(t, cookies[i%3] != "", pass.Trusted())
		require.NoError(t, pass.Fail(ctx))
	}
	login := s.replayed(t, parse(t, `
login:
  device:    {by: device, clients: trusted, limit: 2 per 1h, counts: failures}
  strangers: {by: account, clients: untrusted, limit: 1 per 1h, counts: failures}
`)).Actions[0]
	require.Equal(t, 2, login.Rules[0].Refused, "the third of each device")
	require.Equal(t, 2, login.Rules[1].Refused, "the second and third of the stranger")
}
