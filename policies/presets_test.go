package policies_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter/memstore"
	"authguard/policies"
)

// These numbers are what the documentation promises: change both together.
const defaultsPrinted = `
login/account           5 per 15m0s and 30 per 24h0m0s                                            by account, untrusted                   failures  deny
login/streak            10 failures free, then 30s ×2 up to 1h0m0s, locked at 80                  by account, untrusted, shared password  failures  deny
login/ip                about 100 per 1h0m0s                                                      by ip, untrusted                        failures  deny
login/network           about 400 per 1h0m0s                                                      by ip/48, untrusted                     failures  deny
login/spraying          10 different per 1h0m0s                                                   by ip, distinct account, untrusted      failures  challenge
login/global            about 1000 per 10m0s                                                      by global, untrusted                    failures  challenge
login/flood             about 300 per 1m0s                                                        by ip, untrusted                        attempts  deny
login/flood_network     about 1200 per 1m0s                                                       by ip/48, untrusted                     attempts  deny
login/pace              about 120 per 1m0s                                                        by account, untrusted                   attempts  deny
login/device            5 per 15m0s and 10 failures free, then 30s ×2 up to 1h0m0s, locked at 20  by device, trusted                      failures  deny
login/devices           10 failures free, then 30s ×2 up to 1h0m0s, locked at 20                  by account, trusted, shared password    failures  deny
login/devices_pace      about 120 per 1m0s                                                        by account, trusted                     attempts  deny
reauth/account          5 per 15m0s                                                               by account, untrusted                   failures  deny
reauth/streak           10 failures free, then 30s ×2 up to 1h0m0s, locked at 80                  by account, untrusted, shared password  failures  deny
reauth/pace             about 30 per 1m0s                                                         by account, untrusted                   attempts  deny
reauth/device           5 per 15m0s and 10 failures free, then 30s ×2 up to 1h0m0s, locked at 20  by device, trusted                      failures  deny
reauth/devices          10 failures free, then 30s ×2 up to 1h0m0s, locked at 20                  by account, trusted, shared password    failures  deny
reauth/devices_pace     about 30 per 1m0s                                                         by account, trusted                     attempts  deny
otp/account             5 per 15m0s                                                               by account                              failures  deny
otp/streak              10 failures free, then 30s ×2 up to 1h0m0s, locked at 50                  by account                              failures  deny
password_reset/account  3 per 1h0m0s and 6 per 24h0m0s                                            by account                              attempts  silent
password_reset/ip       about 10 per 1h0m0s                                                       by ip                                   attempts  deny
password_reset/network  about 40 per 1h0m0s                                                       by ip/48                                attempts  deny
reset_confirm/ip        about 20 per 15m0s                                                        by ip                                   attempts  deny
signup/ip               about 5 per 1h0m0s                                                        by ip                                   attempts  deny
signup/network          about 40 per 1h0m0s                                                       by ip/48                                attempts  deny
signup/mail             3 per 24h0m0s                                                             by account                              attempts  silent
signup_confirm/ip       about 20 per 15m0s                                                        by ip                                   attempts  deny
api/key                 10 at once, 1 per 1s                                                      by api_key                              attempts  deny
api/owner               10 at once, 1 per 1s                                                      by account                              attempts  deny
api_pro/key             100 at once, 10 per 1s and about 100000 per 24h0m0s                       by api_key                              attempts  deny
api_pro/owner           100 at once, 10 per 1s and about 100000 per 24h0m0s                       by account                              attempts  deny
api_unauthenticated/ip  about 20 per 1m0s                                                         by ip                                   attempts  deny
admin/ip                10 per 15m0s                                                              by ip                                   failures  deny
admin/all               60 per 1h0m0s                                                             by global                               failures  deny
`

const strictPrinted = `
login/account        5 per 15m0s and 30 per 24h0m0s                            by account, untrusted                   attempts  deny
login/streak         10 failures free, then 30s ×2 up to 1h0m0s, locked at 80  by account, untrusted, shared password  failures  deny
login/ip             about 100 per 1h0m0s                                      by ip, untrusted                        attempts  deny
login/network        about 400 per 1h0m0s                                      by ip/48, untrusted                     attempts  deny
login/spraying       10 different per 1h0m0s                                   by ip, distinct account, untrusted      failures  challenge
login/global         about 1000 per 10m0s                                      by global, untrusted                    failures  challenge
login/device         5 per 15m0s                                               by device, trusted                      attempts  deny
login/device_streak  10 failures free, then 30s ×2 up to 1h0m0s, locked at 20  by device, trusted                      failures  deny
login/devices        10 failures free, then 30s ×2 up to 1h0m0s, locked at 20  by account, trusted, shared password    failures  deny
`

const tieredPrinted = `
api/key    about 10 per 1s and about 100 per 1m0s and about 1000 per 1h0m0s and about 10000 per 24h0m0s  by api_key  attempts  deny
api/owner  about 10 per 1s and about 100 per 1m0s and about 1000 per 1h0m0s and about 10000 per 24h0m0s  by account  attempts  deny
`

func TestPresetNumbers(t *testing.T) {
	require.Equal(t, defaultsPrinted, "\n"+policies.Format(policies.Default()))
	require.Equal(t, strictPrinted, "\n"+policies.Format(preset(t, "login_strict")))
	require.Equal(t, tieredPrinted, "\n"+policies.Format(preset(t, "api_tiered")))
}

func preset(t *testing.T, name string) []guard.Policy {
	t.Helper()
	ps, err := policies.Preset(name)
	require.NoError(t, err)
	return ps
}

func TestEveryPresetIsADefaultOrAVariant(t *testing.T) {
	var names []string
	for _, p := range policies.Default() {
		require.Equal(t, []guard.Policy{p}, preset(t, p.Action), "the preset is named after its action")
		names = append(names, p.Action)
	}
	names = append(names, "login_strict", "api_tiered")
	slices.Sort(names)
	require.Equal(t, names, policies.Names())
}

func TestPresetsSayWhatTheyDo(t *testing.T) {
	for _, name := range policies.Names() {
		text, err := os.ReadFile(filepath.Join("presets", name+".yaml"))
		require.NoError(t, err)
		comment := regexp.MustCompile(`^(#.*\n)+`).Find(text)
		for _, part := range []string{"# " + name + ": ", "# Stops: ", "# May annoy: ", "# Leaves"} {
			require.Contains(t, string(comment), part, name)
		}
	}
}

func TestPresetsLoadLikeAnyFile(t *testing.T) {
	for _, name := range policies.Names() {
		got, err := policies.Load(filepath.Join("presets", name+".yaml"))
		require.NoError(t, err)
		require.Equal(t, preset(t, name), got)
	}
}

func TestUnknownPreset(t *testing.T) {
	for _, name := range []string{"", "nope", "../presets/login", "login.yaml"} {
		_, err := policies.Preset(name)
		require.ErrorContains(t, err, "policies: no preset")
		require.ErrorContains(t, err, "want one of admin, api, api_pro, api_tiered, ")
	}
}

// An owner of one key must not be refused for what the key itself allows.
func TestOwnerRuleIsNoTighterThanAKey(t *testing.T) {
	for _, name := range []string{"api", "api_pro", "api_tiered"} {
		rules := preset(t, name)[0].Rules
		require.Len(t, rules, 2)
		require.Equal(t, guard.ByAPIKey, rules[0].By)
		require.Equal(t, guard.ByAccount, rules[1].By)
		require.Equal(t, rules[0].Limits, rules[1].Limits)
	}
}

func TestGuardTakesThePresets(t *testing.T) {
	for _, ps := range [][]guard.Policy{
		policies.Default(),
		policies.Override(policies.Default(), slices.Concat(preset(t, "login_strict"), preset(t, "api_tiered"))),
	} {
		_, err := guard.New(guard.Config{
			Store:    memstore.New(memstore.Config{}),
			Secret:   []byte(strings.Repeat("s", 32)),
			Policies: ps,
		})
		require.NoError(t, err)
	}
}

func TestCallersOwnWhatTheyGet(t *testing.T) {
	mine := policies.Default()
	mine[0].Rules[0].Limits[0] = nil
	mine[0].Rules[1].Name = "x"
	mine[1] = guard.Policy{}
	require.Equal(t, defaultsPrinted, "\n"+policies.Format(policies.Default()))

	base := policies.Default()
	merged := policies.Override(base, preset(t, "login_strict"))
	merged[1].Rules[0].Limits[0] = nil
	require.Equal(t, policies.Default(), base)
}

func TestOverrideReplacesWholePoliciesAndAddsNewOnes(t *testing.T) {
	over, err := policies.Parse("own", []byte("reauth: {r: {by: ip, fixed: 9 per 1s}}\nexport: {r: {by: tenant, limit: 2 per 1d}}"))
	require.NoError(t, err)
	got := policies.Override(policies.Default(), over)
	require.Len(t, got, len(policies.Default())+1)
	require.Equal(t, "login", got[0].Action)
	require.Equal(t, `reauth/r  9 per fixed 1s  by ip      attempts  deny
export/r  2 per 24h0m0s   by tenant  attempts  deny
`, policies.Format([]guard.Policy{got[1], got[len(got)-1]}))
}
