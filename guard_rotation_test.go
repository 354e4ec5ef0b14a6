package authguard_test

import (
	"bytes"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/policies"
)

// A secret is replaced while processes run: those with the old one, both, and at last
// the new one alone share every budget, to the attempt, in every store.
func TestProcessesShareBudgetsThroughARotation(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
			store := open(t, func() time.Time { return now })
			first, second := bytes.Repeat([]byte("1"), 32), bytes.Repeat([]byte("2"), 32)
			with := func(secret, previous []byte) *guard.Guard {
				g, err := guard.New(guard.Config{Store: store, Secret: secret, PreviousSecret: previous, Policies: policies.Default(), Now: func() time.Time { return now }})
				require.NoError(t, err)
				return g
			}
			old, both, renewed := with(first, nil), with(second, first), with(second, nil)
			addr := netip.MustParseAddr("198.18.0.1")
			attempt := func(g *guard.Guard) *guard.Pass { // nil if it is refused
				addr = addr.Next()
				pass, err := g.Check(t.Context(), guard.Attempt{Action: "login", Account: "bob", IP: addr})
				if err != nil {
					require.ErrorAs(t, err, new(*guard.Denied))
					return nil
				}
				return pass
			}
			fiveOf := func(turns ...*guard.Guard) {
				t.Helper()
				for i := range 5 {
					right := attempt(turns[(i+1)%len(turns)])
					require.NotNil(t, right, "%d", i)
					require.NoError(t, right.Succeed(t.Context()))
					wrong := attempt(turns[i%len(turns)])
					require.NotNil(t, wrong, "%d", i)
					require.NoError(t, wrong.Fail(t.Context()))
				}
				for _, g := range turns {
					require.True(t, attempt(g) == nil)
				}
			}
			fiveOf(old, both)
			require.NotNil(t, attempt(renewed), "too early: it knows nothing of what the old one has counted")
			now = now.Add(24 * time.Hour) // the longest window
			fiveOf(both)
			now = now.Add(15 * time.Minute)
			fiveOf(both, renewed)
			require.NoError(t, both.Unlock(t.Context(), "bob"))
			fiveOf(renewed, both)
		})
	}
}
