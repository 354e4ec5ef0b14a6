package guard_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"authguard/guard"
)

// AC-03: every spelling that some database takes for one account is one.
func TestCanonicalMergesSpellings(t *testing.T) {
	for want, spellings := range map[string][]string{
		"test@example.com": {"test@example.com", "TEST@example.com", "ⓣest@example.com", "tⓔst@example.com",
			"ｔest@example.com", " test@example.com ", "test＠example.com", "te\u00adst@example.com", "test\u200d@example.com", "\ufefftest@example.com", "test@example.com\u00a0"},
		"strasse":     {"Straße", "STRASSE", "strasse"},
		"σασ":         {"ΣΑΣ", "σας", "σασ"},
		"kevin":       {"\u212aevin", "KEVIN"},
		"fish":        {"ﬁsh"},
		"å":           {"\u212b", "A\u030a", "å"},
		"9élan@x.com": {"9élan@x.com", "9ÉLAN@X.COM"},
		"12é":         {"１２É"},
		"a lice":      {"a lice"},
		"":            {"", "  ", "\u3000", "\u200b\u200d"},
	} {
		for _, s := range spellings {
			got, err := guard.Canonical(s)
			require.NoError(t, err, "%q", s)
			require.Equal(t, want, got, "%q", s)
		}
	}
}

func TestCanonicalRefuses(t *testing.T) {
	for _, bad := range []string{
		strings.Repeat("a", 257), "\xff", "a\x00b", "a\nb", "bob\x7f", "é\u0085x",
		strings.Repeat("\ufdfa", 80), // 240 bytes that fold to 18 letters each
	} {
		_, err := guard.Canonical(bad)
		require.Error(t, err, "%q", bad)
	}
	got, err := guard.Canonical(strings.Repeat("a", 256))
	require.NoError(t, err)
	require.Len(t, got, 256)
}

func FuzzCanonical(f *testing.F) {
	for _, s := range []string{"Bob@Example.com", "ⓣest", "Straße", "\u0345\u03b1", "İstanbul", "ﷺ", "a\u0300\u0345"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		once, err := guard.Canonical(s)
		if err != nil {
			require.Empty(t, once)
			return
		}
		require.True(t, utf8.ValidString(once))
		require.LessOrEqual(t, len(once), 256)
		twice, err := guard.Canonical(once)
		require.NoError(t, err)
		require.Equal(t, once, twice)
		upper, err := guard.Canonical(strings.ToUpper(once))
		if err == nil && strings.ToLower(strings.ToUpper(once)) == once {
			require.Equal(t, once, upper)
		}
	})
}

func TestSpellingsShareOneBudget(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	for _, s := range []string{"test@example.com", "ⓣest@example.com", "tⓔst@example.com", "TEST@example.com", "ｔest@example.com"} {
		pass := b.requireAdmitted(t, by(s, here))
		require.Equal(t, "test@example.com", pass.Account)
		require.NoError(t, pass.Fail(ctx))
	}
	b.requireDenied(t, 15*time.Minute, by("test@example.com", here))
}

func TestOpaqueNamesAreTakenByteForByte(t *testing.T) {
	b := newBench(t, func(c *guard.Config) { c.Opaque = true }, login(accountRule()))
	b.fail(t, 5, by("Bob", here))
	require.Equal(t, "bob", b.requireAdmitted(t, by("bob", here)).Account)
	b.requireDenied(t, 15*time.Minute, by("Bob", here))
}

// AC-01, AC-02: with a resolver all names of an account share its counts, and a
// name that it does not know is counted all the same.
func TestResolverMergesAliases(t *testing.T) {
	ids := map[string]string{"alice": "17", "alice@example.com": "17"}
	asked := 0
	b := newBench(t, func(c *guard.Config) {
		c.Resolve = func(_ context.Context, name string) (guard.Account, error) {
			asked++
			if name == "broken" {
				return guard.Account{}, errors.New("no database")
			}
			return guard.Account{ID: ids[name]}, nil
		}
	}, login(accountRule()))
	for i := range 5 {
		name := []string{"Alice", "ALICE@example.com"}[i%2]
		pass := b.requireAdmitted(t, by(name, here))
		require.NotEqual(t, "17", pass.Account)
		require.NoError(t, pass.Fail(ctx))
	}
	b.requireDenied(t, 15*time.Minute, by("alice", here))
	b.requireDenied(t, 15*time.Minute, by("alice@example.com", here))
	b.fail(t, 5, by("17", here)) // a name that looks like an id is not that account
	b.requireDenied(t, 15*time.Minute, by("17", here))
	b.fail(t, 5, by("nobody", here))
	b.requireDenied(t, 15*time.Minute, by("nobody", here))
	_, err := b.Check(ctx, by("broken", here))
	require.ErrorIs(t, err, guard.ErrUnavailable)

	asked = 0
	require.NoError(t, b.Unlock(ctx, "alice@example.com", "login", "login/account"))
	require.Equal(t, 1, asked, "once, however many actions")
	b.requireAdmitted(t, by("alice", here))
}

// AC-08: the key is computed once, by Check; what the application does with
// the name meanwhile changes nothing.
func TestThePassRemembersWhoWasCharged(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	for range 5 {
		a := by("bob", here)
		pass := b.requireAdmitted(t, a)
		a.Account, pass.Account = "somebody else", "somebody else"
		require.NoError(t, pass.Fail(ctx))
	}
	b.requireDenied(t, 15*time.Minute, by("bob", here))
}
