package policies_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/policies"
)

func explain(t *testing.T, file string) policies.Explanation {
	t.Helper()
	ps, err := policies.Parse("p.yaml", []byte(file))
	require.NoError(t, err)
	left, err := policies.Explain(t.Context(), ps)
	require.NoError(t, err)
	return left
}

// find is the row of a guesser.
func find(t *testing.T, e policies.Explanation, g policies.Guesser, o policies.Owner) policies.Left {
	t.Helper()
	for _, l := range e {
		if l.Guesser == g && l.Owner == o {
			return l
		}
	}
	require.Failf(t, "no row", "%s, owner %q", g, o)
	return policies.Left{}
}

func exactly(n int64) policies.Figure { return policies.Figure{N: n} }

// accountOnly is the login preset without the rules that bound addresses, which
// no guesser at one account comes near.
func accountOnly(t *testing.T) []guard.Policy {
	ps := preset(t, "login")
	ps[0].Rules = slices.DeleteFunc(ps[0].Rules, func(r guard.Rule) bool {
		account := r.By == guard.ByAccount || r.By == guard.ByDevice
		return !account || r.Counts != guard.Failures
	})
	require.Len(t, ps[0].Rules, 4)
	return ps
}

// 30 on the first day, 24 a day then, 80 in all; but 10 at a time, a week apart,
// are never more than the free ones.
func TestLoginLocksAtEighty(t *testing.T) {
	e, err := policies.Explain(t.Context(), accountOnly(t))
	require.NoError(t, err)
	for _, g := range []policies.Guesser{policies.OneAddress, policies.Botnet} {
		l := find(t, e, g, policies.Idle)
		require.Equal(t, exactly(15), l.Hour)
		require.Equal(t, exactly(30), l.Day)
		require.Equal(t, exactly(80), l.Days30)
		require.Equal(t, exactly(530), l.Year)
		require.Equal(t, exactly(5), l.AnySecond)
		require.Equal(t, 80, l.LockedAfter)
		require.Equal(t, 73*time.Hour, l.LockedIn.Round(time.Hour))
		require.Equal(t, 7*24*time.Hour, l.Pause)
		require.EqualValues(t, 10, l.PauseAfter)

		l = find(t, e, g, policies.LoggingIn)
		require.Equal(t, exactly(30), l.Day)
		require.Equal(t, exactly(10_950), l.Year)
		require.Zero(t, l.LockedAfter)
	}
	text := e.String()
	require.Contains(t, text, "botnet, one account, owner idle ")
	require.Contains(t, text, "\n  Owner idle: who never stops locks the account after 80, 3 days 1 hour after the first.\n")
	require.Contains(t, text, "\n  Owner idle: the year takes patience, a pause of 7 days after each 10, in which they are forgotten.\n")
}

// Where failures are remembered as long as the lock, patience gains nothing:
// four locks a year.
func TestRememberingFreeFailuresStopsPatience(t *testing.T) {
	e := explain(t, `login:
  account: {by: account, limit: [5 per 15m, 30 per 24h], counts: failures}
  streak:  {by: account, backoff: {free: 10, base: 30s, max: 1h, lock: 80, forget: 90d}}`)
	l := find(t, e, policies.Botnet, policies.Idle)
	require.Equal(t, exactly(320), l.Year)
	require.Zero(t, l.Pause)
}

func TestWindowsOfTheClockDoubleAtTheirEdge(t *testing.T) {
	l := find(t, explain(t, `export: {r: {by: ip, fixed: 5 per 1h}}`), policies.OneAddress, policies.AnyOwner)
	require.Equal(t, exactly(5), l.Hour)
	require.Equal(t, exactly(120), l.Day)
	require.Equal(t, exactly(43_800), exact(t, `export: {r: {by: ip, fixed: 5 per 1h}}`))
	require.Equal(t, exactly(10), l.AnySecond)

	l = find(t, explain(t, `export: {r: {by: ip, counter: 100 per 1h}}`), policies.OneAddress, policies.AnyOwner)
	require.Equal(t, exactly(100), l.Hour)
	require.Equal(t, exactly(1+24*99), l.Day, "a remainder of the hour before always counts")
	require.Equal(t, exactly(199), l.AnyHour)

	l = find(t, explain(t, `export: {r: {by: ip, limit: 100 per 1h}}`), policies.OneAddress, policies.AnyOwner)
	require.Equal(t, exactly(100), l.AnyHour)
	require.Equal(t, exactly(2400), l.Day)
}

// A year of that is too long to run: its figure goes on from what was.
func exact(t *testing.T, file string) policies.Figure {
	f := find(t, explain(t, file), policies.OneAddress, policies.AnyOwner).Year
	require.True(t, f.Estimated)
	f.Estimated = false
	return f
}

func TestWhoIsBounded(t *testing.T) {
	for file, want := range map[string][3]string{ // first days of OneAddress, AllAccounts, Botnet
		`a: {r: {by: account, limit: 5 per 1d}}`:                                                  {"5", "no limit", "5"},
		`a: {r: {by: ip, limit: 5 per 1d}}`:                                                       {"5", "5", "no limit"},
		`a: {r: {by: ip+account, limit: 5 per 1d}}`:                                               {"5", "no limit", "no limit"},
		`a: {r: {by: api_key, limit: 5 per 1d}}`:                                                  {"5", "no limit", "5"},
		`a: {r: {by: global, limit: 5 per 1d}}`:                                                   {"5", "5", "5"},
		`a: {r: {by: tenant, limit: 5 per 1d}, s: {by: "part:plan", limit: 4 per 1d}}`:            {"4", "4", "4"},
		`a: {r: {by: global, limit: 5 per 1d, effect: observe}}`:                                  {"no limit", "no limit", "no limit"},
		`a: {r: {by: ip, distinct: account, limit: 3 per 1d}}`:                                    {"no limit", "no limit", "no limit"},
		`a: {r: {by: ip, distinct: account, limit: 3 per 1d}, s: {by: account, limit: 5 per 1d}}`: {"5", "15", "5"},
		`a: {r: {by: account, distinct: ip, limit: 3 per 1d}, s: {by: ip, limit: 5 per 1d}}`:      {"5", "5", "15"},
		`a: {r: {by: ip/48, limit: 7 per 1d}, s: {by: ip, limit: 5 per 1d}}`:                      {"5", "5", "no limit"},
		`a: {r: {by: global, queue: 3, leak: 1 per 12h}}`:                                         {"4", "4", "4"},
		`a: {r: {by: account, limit: 2 per 1d, effect: silent}, s: {by: ip, limit: 9 per 1d}}`:    {"2", "9", "2"},
	} {
		if raced && strings.Contains(file, "distinct") {
			continue
		}
		e := explain(t, file)
		var got [3]string
		for i, g := range []policies.Guesser{policies.OneAddress, policies.AllAccounts, policies.Botnet} {
			got[i] = find(t, e, g, policies.AnyOwner).Day.String()
		}
		require.Equal(t, want, got, file)
	}
	e := explain(t, `a: {r: {by: ip/48, limit: 12 per 1d}, s: {by: ip, limit: 5 per 1d}}`)
	l := find(t, e, policies.IPv6Network, policies.AnyOwner)
	require.Equal(t, exactly(12), l.Day)
	require.Equal(t, 48, l.Network)
	require.Contains(t, e.String(), "one IPv6 /48, all accounts")
}

// A paid solver gets around the rules that ask for challenges, and around no other.
func TestAPaidSolverIsBoundedByWhatDenies(t *testing.T) {
	const file = `a:
  account:  {by: account, limit: 3 per 1d}
  ip:       {by: ip, limit: 20 per 1d}
  spraying: {by: ip, distinct: account, limit: 2 per 1d, effect: challenge}
  all:      {by: global, limit: 50 per 1d, effect: challenge}`
	e := explain(t, file)
	day := func(g policies.Guesser, solver bool) string {
		for _, l := range e {
			if l.Guesser == g && l.Solver == solver {
				require.True(t, l.Asked)
				return l.Day.String()
			}
		}
		return "no row"
	}
	require.Equal(t, "6", day(policies.AllAccounts, false), "three guesses at each of two accounts")
	require.Equal(t, "20", day(policies.AllAccounts, true))
	require.Equal(t, "50", day(policies.BotnetAll, false))
	require.Equal(t, "no limit", day(policies.BotnetAll, true))
	require.Equal(t, "3", day(policies.Botnet, false))
	require.Equal(t, "no row", day(policies.Botnet, true), "solving brings nothing there")
	text := e.String()
	require.Contains(t, text, "\n  one address, all accounts, challenges solved ")
	require.Contains(t, text, "\n  Whoever solves challenges, or pays for it, gets what the rows say that end so, and no more where there is none.\n")
	require.Contains(t, text, "those by global bound nobody.\n")

	// A rule that denies at first and asks for longer is asked about, too.
	e = explain(t, `a:
  ip:   {by: ip, limit: 1 per 1h}
  slow: {by: ip, limit: 1 per 1d, effect: challenge}`)
	require.Equal(t, "1", day(policies.OneAddress, false))
	require.Equal(t, "24", day(policies.OneAddress, true))

	require.NotContains(t, explain(t, `a: {r: {by: global, limit: 5 per 1d}}`).String(), "challenge")
	require.Equal(t, "9", find(t, explain(t, `a: {r: {by: global, limit: 9 per 1d}, s: {by: account, limit: 5 per 1d}, i: {by: ip, limit: 5 per 1d}}`),
		policies.BotnetAll, policies.AnyOwner).Day.String())
}

// An account that is locked before its owner comes stays locked, unless the
// guesser stops right before that.
func TestOwnerIsLockedOutOrGivesNewGuesses(t *testing.T) {
	e := explain(t, `a: {r: {by: account, backoff: {free: 3, base: 1s, max: 1m, lock: 6}}}`)
	l := find(t, e, policies.Botnet, policies.LoggingIn)
	require.Equal(t, 6, l.LockedAfter)
	require.EqualValues(t, 5, l.PauseAfter)
	require.Equal(t, exactly(10), l.Day, "five before noon, five after")
	require.Equal(t, exactly(5+365*5), l.Year)
}

func TestMoreThanCanBeRunIsToldApart(t *testing.T) {
	if raced {
		t.Skip("half a million attempts")
	}
	l := find(t, explain(t, `a: {r: {by: ip, fixed: 1000000 per 1d}}`), policies.OneAddress, policies.AnyOwner)
	require.True(t, l.Day.Unbounded)
	require.Contains(t, l.Day.String(), "over 2")
}

func TestExplainTellsErrors(t *testing.T) {
	_, err := policies.Explain(t.Context(), []guard.Policy{{Action: "a"}})
	require.EqualError(t, err, "policies: explain: guard: policy a has no rules")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = policies.Explain(ctx, preset(t, "admin"))
	require.ErrorIs(t, err, context.Canceled)
	none, err := policies.Explain(t.Context(), nil)
	require.NoError(t, err)
	require.Empty(t, none)
}

// What a preset's comment says it leaves is what an attack finds.
func TestPresetsLeaveWhatTheySay(t *testing.T) {
	for _, name := range policies.Names() {
		if raced && name != "reauth" && name != "signup_confirm" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("presets", name+".yaml"))
			require.NoError(t, err)
			leaves := regexp.MustCompile(`(?m)^# Leaves(.*\n#)*.*\n`).FindString(string(text))
			e, err := policies.Explain(t.Context(), preset(t, name))
			require.NoError(t, err)
			for _, l := range e {
				for _, f := range []policies.Figure{l.Hour, l.Day, l.Year} {
					if f.Unbounded {
						continue
					}
					number := regexp.QuoteMeta(strings.TrimPrefix(f.String(), "~"))
					if f.Estimated {
						number = `about[ \n#]+` + number
					}
					require.Regexp(t, `(^|[^0-9,])`+number+`([^0-9,]|,?[ \n])`, leaves, "%+v", l)
				}
			}
		})
	}
}

// A device cookie is twenty guesses, as long as it lives and whatever its owner does
// on other devices, and then nothing.
func TestAStolenDeviceLeavesTwenty(t *testing.T) {
	e, err := policies.Explain(t.Context(), accountOnly(t))
	require.NoError(t, err)
	for _, o := range []policies.Owner{policies.Idle, policies.LoggingIn} {
		l := find(t, e, policies.StolenDevice, o)
		require.Equal(t, exactly(15), l.Hour)
		require.Equal(t, exactly(20), l.Day)
		require.Equal(t, exactly(20), l.Year)
		require.Equal(t, 20, l.LockedAfter)
	}
	require.True(t, find(t, e, policies.Botnet, policies.Idle).DevicesSpared)
	text := e.String()
	require.Contains(t, text, "\n  stolen device cookie, one account, owner logging in ")
	require.Contains(t, text, "\n  An owner on a known device is never refused by a botnet, ")
	require.Contains(t, text, "\n  Owner idle: who never stops locks the account's devices after 20, 4 hours 33 minutes after the first.\n")
}

// The cookie expires after 180 days; without a lock it is good for as many of them.
func TestAStolenDeviceExpires(t *testing.T) {
	e := explain(t, `a:
  strangers: {by: account, clients: untrusted, limit: 1 per 1d}
  devices:   {by: device, clients: trusted, limit: 2 per 1d}`)
	l := find(t, e, policies.StolenDevice, policies.AnyOwner)
	require.Equal(t, exactly(2), l.Day)
	require.Equal(t, exactly(360), l.Year)
	require.Equal(t, exactly(365), find(t, e, policies.Botnet, policies.AnyOwner).Year)
}

// Where the streak is the whole account's, an owner who logs in gives a thief new
// guesses; and a rule that counts everybody refuses known devices, too.
func TestWhatDevicesDoNotGain(t *testing.T) {
	if raced {
		t.Skip("a year of attempts, many times")
	}
	e := explain(t, `a:
  strangers: {by: account, clients: untrusted, limit: 5 per 15m, counts: failures}
  devices:   {by: account, clients: trusted, backoff: {free: 10, base: 30s, max: 1h, lock: 20, forget: 180d, forget_beyond: 180d}}
  flood:     {by: ip, counter: 300 per 1m}`)
	require.Equal(t, exactly(20), find(t, e, policies.StolenDevice, policies.Idle).Year)
	l := find(t, e, policies.StolenDevice, policies.LoggingIn)
	require.EqualValues(t, 19, l.PauseAfter)
	require.Equal(t, exactly(180*19+19), l.Year)
	require.Contains(t, e.String(), "Owner logging in: the year takes patience, a pause after each 19, until they are forgotten or the owner has logged in.")
	require.False(t, find(t, e, policies.Botnet, policies.Idle).DevicesSpared)
	require.NotContains(t, e.String(), "never refused")
}
