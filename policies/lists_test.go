package policies_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/policies"
)

const withLists = `
lists:
  deny:
    addresses: [203.0.113.0/24, 198.51.100.7, "2001:db8::/32", "::ffff:192.0.2.1"]
    accounts: [root, Admin]
  allow: {addresses: [192.0.2.0/28]}
login:
  ip: {by: ip, limit: 5 per 15m}
`

func TestListsStandBesideActions(t *testing.T) {
	f, err := policies.ParseFile("f.yaml", []byte(withLists))
	require.NoError(t, err)
	require.Len(t, f.Policies, 1)
	require.Equal(t, "login", f.Policies[0].Action)
	p := netip.MustParsePrefix
	require.Equal(t, guard.Lists{
		DenyAddresses:  []netip.Prefix{p("203.0.113.0/24"), p("198.51.100.7/32"), p("2001:db8::/32"), p("192.0.2.1/32")},
		DenyAccounts:   []string{"root", "Admin"},
		AllowAddresses: []netip.Prefix{p("192.0.2.0/28")},
	}, f.Lists)

	f, err = policies.ParseFile("f.yaml", []byte("login: {ip: {by: ip, limit: 5 per 15m}}"))
	require.NoError(t, err)
	require.Zero(t, f.Lists)
}

func TestListsAreReadStrictly(t *testing.T) {
	for file, want := range map[string]string{
		"lists: []":                                            "f.yaml:1:8: lists is an empty list, want deny or allow",
		"lists: {denied: {}}":                                  `f.yaml:1:9: lists: unknown key "denied", want deny or allow`,
		"lists: {deny: {address: [192.0.2.1]}}":                `f.yaml:1:16: lists/deny: unknown key "address"`,
		"lists: {deny: {addresses: []}}":                       "f.yaml:1:27: lists/deny: addresses is",
		"lists: {deny: {addresses: 192.0.2.1}}":                "f.yaml:1:27: lists/deny: addresses is",
		"lists: {deny: {addresses: [192.0.2.1/24]}}":           `f.yaml:1:28: lists/deny: addresses has "192.0.2.1/24", did you mean 192.0.2.0/24?`,
		"lists: {deny: {addresses: [bob]}}":                    `f.yaml:1:28: lists/deny: addresses has "bob", want addresses or prefixes`,
		"lists: {deny: {addresses: ['fe80::1%eth0']}}":         `f.yaml:1:28: lists/deny: addresses has "fe80::1%eth0", want addresses or prefixes`,
		"lists: {deny: {addresses: [1]}}":                      "f.yaml:1:28: lists/deny: addresses has",
		"lists: {deny: {accounts: ['']}}":                      "f.yaml:1:27: lists/deny: accounts has",
		"lists: {allow: {accounts: [bob]}}":                    "rules by account, device or code cannot be lifted",
		"lists: {allow: {addresses: [0.0.0.0/0]}}":             "f.yaml:1:29: lists/allow: AllowAddresses has 0.0.0.0/0: so many would be counted by no rule",
		"lists: {allow: {addresses: ['::/3']}}":                "so many would be counted",
		"lists: {deny: {accounts: [a]}, deny: {accounts: []}}": `twice`,
		"lists: &x {deny: {accounts: [a]}}":                    "anchors are not allowed",
		"lists: {deny: {accounts: [a]}}\nlogin: {ip: {}}":      "f.yaml:2:",
	} {
		_, err := policies.ParseFile("f.yaml", []byte(file))
		require.ErrorContains(t, err, want, file)
		_, same := policies.Parse("f.yaml", []byte(file))
		require.EqualError(t, same, err.Error(), "either reader reads all of it")
	}
	_, err := policies.LoadFile("/no/such/file")
	require.ErrorContains(t, err, "no such file")
	require.False(t, strings.HasPrefix(err.Error(), "policies: policies:"))
}
