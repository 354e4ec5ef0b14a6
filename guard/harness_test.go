package guard_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/internal/testkit"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

var (
	ctx    = context.Background()
	secret = []byte("a secret of thirty-two bytes !!!")
	here   = netip.MustParseAddr("198.51.100.9")
)

// recorder keeps the events it is told of.
type recorder struct {
	mu     sync.Mutex
	events []guard.Event
}

func (r *recorder) Observe(_ context.Context, e guard.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *recorder) count(k guard.EventKind) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == k {
			n++
		}
	}
	return n
}

// bench is a guard with its clock, store and recorder.
type bench struct {
	*guard.Guard
	clock  *testkit.Clock
	store  limiter.Store
	events *recorder
}

func newBench(t testing.TB, change func(*guard.Config), policies ...guard.Policy) bench {
	t.Helper()
	b := bench{clock: testkit.NewClock(time.Unix(1_800_000_000, 0)), events: &recorder{}}
	b.store = memstore.New(memstore.Config{Now: b.clock.Now})
	c := guard.Config{Store: b.store, Secret: secret, Policies: policies, Observer: b.events, Now: b.clock.Now}
	if change != nil {
		change(&c)
	}
	g, err := guard.New(c)
	require.NoError(t, err)
	b.Guard = g
	return b
}

func window(n int64, w time.Duration) []limiter.Limit {
	return []limiter.Limit{limiter.SlidingWindow{Limit: n, Window: w}}
}

// accountRule is five failures in fifteen minutes for one account.
func accountRule() guard.Rule {
	return guard.Rule{Name: "account", By: guard.ByAccount, Limits: window(5, 15*time.Minute), Counts: guard.Failures}
}

func ipRule(n int64) guard.Rule {
	return guard.Rule{Name: "ip", By: guard.ByIP, Limits: window(n, 15*time.Minute), Counts: guard.Failures}
}

func login(rules ...guard.Rule) guard.Policy { return guard.Policy{Action: "login", Rules: rules} }

func by(account string, addr netip.Addr) guard.Attempt {
	return guard.Attempt{Action: "login", Account: account, IP: addr}
}

// fail makes n failed attempts, all of which must be admitted.
func (b bench) fail(t testing.TB, n int, a guard.Attempt) {
	t.Helper()
	for range n {
		pass, err := b.Check(ctx, a)
		require.NoError(t, err)
		require.NoError(t, pass.Fail(ctx))
	}
}

// guess is one attempt that fails, if it is admitted.
func (b bench) guess(a guard.Attempt) error {
	pass, err := b.Check(ctx, a)
	if err == nil {
		err = pass.Fail(ctx)
	}
	return err
}

func (b bench) requireAdmitted(t testing.TB, a guard.Attempt) *guard.Pass {
	t.Helper()
	pass, err := b.Check(ctx, a)
	require.NoError(t, err)
	return pass
}

func (b bench) requireDenied(t testing.TB, wait time.Duration, a guard.Attempt) *guard.Denied {
	t.Helper()
	pass, err := b.Check(ctx, a)
	require.Nil(t, pass)
	var denied *guard.Denied
	require.True(t, errors.As(err, &denied), "want a denial, have %v", err)
	require.Equal(t, wait, denied.RetryAfter)
	return denied
}

// brokenStore answers every call with an error.
type brokenStore struct{ err error }

func (s brokenStore) Take(context.Context, []limiter.Charge) (bool, error) { return false, s.err }
func (s brokenStore) Peek(context.Context, []limiter.Charge) error         { return s.err }
func (s brokenStore) Refund(context.Context, []limiter.Charge) error       { return s.err }
func (s brokenStore) Forget(context.Context, []string) error               { return s.err }
