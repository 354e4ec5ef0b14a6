package guard_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/internal/testkit"
)

// ST-05: what is decided without the store is logged once an interval, with how
// often, and so is that it is over.
func TestOutagesAreLoggedOnceAnInterval(t *testing.T) {
	var log *testkit.Buffer
	lines := func() []string { return strings.Split(strings.TrimSpace(log.String()), "\n") }
	b, store := newFlakyBench(t, 1, withOutage(accountRule(), guard.OutageLocal))
	log = new(testkit.Buffer)
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	outages := guard.NewOutageLog(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: noTime})), time.Minute, b.clock.Now)
	g, err := guard.New(guard.Config{
		Store: store, Secret: secret, Policies: []guard.Policy{login(withOutage(accountRule(), guard.OutageLocal)), {Action: "strict", Rules: []guard.Rule{accountRule()}}},
		Now: b.clock.Now, Observer: guard.Observers{b.events, outages},
	})
	require.NoError(t, err)
	check := func(n int, action string) {
		for range n {
			a := by("bob", here)
			a.Action = action
			if pass, err := g.Check(ctx, a); err == nil { // whatever comes of it
				require.NoError(t, pass.Fail(ctx))
			}
		}
	}
	check(10, "login")
	require.Empty(t, log.String())

	store.down.Store(true)
	check(7, "login")
	check(3, "strict")
	require.Equal(t, []string{`level=ERROR msg="guard: limits cannot be checked; each rule decides by its on_outage" action=login rule="" err="connection refused"`}, lines())
	b.clock.Advance(time.Minute)
	check(2, "login")
	require.Len(t, lines(), 2)
	require.Equal(t, `level=ERROR msg="guard: limits still cannot be checked" faults=10 degraded=7 err="connection refused"`, lines()[1], "since the first")

	store.down.Store(false)
	b.clock.Advance(30 * time.Second)
	check(5, "login")
	require.Len(t, lines(), 2, "it may flap")
	b.clock.Advance(30 * time.Second)
	check(5, "login")
	require.Len(t, lines(), 3)
	require.Contains(t, lines()[2], "limits are checked again")
	check(5, "login")
	require.Len(t, lines(), 3)
	require.NotContains(t, log.String(), "bob")
}
