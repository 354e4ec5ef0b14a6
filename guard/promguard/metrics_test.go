package promguard_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/promguard"
	"authguard/limiter"
	"authguard/limiter/memstore"
	"authguard/policies"
)

var (
	ctx  = context.Background()
	here = netip.MustParseAddr("198.51.100.9")
)

// gather are the series of a registry and their values.
func gather(t *testing.T, r prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := r.Gather()
	require.NoError(t, err)
	series := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			series[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return series
}

// counted is what is not 0, without the prefix that all share.
func counted(series map[string]float64) map[string]float64 {
	some := make(map[string]float64)
	for name, v := range series {
		if v != 0 {
			some[strings.TrimPrefix(name, "authguard_")] = v
		}
	}
	return some
}

// flaky fails while it is down.
type flaky struct {
	limiter.Store
	down atomic.Bool
}

func (s *flaky) Take(ctx context.Context, c []limiter.Charge) (bool, error) {
	if s.down.Load() {
		return false, errors.New("down")
	}
	return s.Store.Take(ctx, c)
}

type bench struct {
	*guard.Guard
	registry *prometheus.Registry
	store    *flaky
}

func newBench(t *testing.T, ps ...guard.Policy) bench {
	t.Helper()
	m, err := promguard.New(ps)
	require.NoError(t, err)
	memory := memstore.New(memstore.Config{})
	b := bench{registry: prometheus.NewPedanticRegistry(), store: &flaky{Store: memory}}
	require.NoError(t, b.registry.Register(m))
	require.NoError(t, b.registry.Register(promguard.Memory(memory)))
	g, err := guard.New(guard.Config{Store: b.store, Secret: []byte(strings.Repeat("s", 32)), Policies: ps, Observer: m})
	require.NoError(t, err)
	b.Guard = g
	return b
}

func rule(name string, by guard.By, n int64, change func(*guard.Rule)) guard.Rule {
	r := guard.Rule{Name: name, By: by, Counts: guard.Failures, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: n, Window: time.Hour}}}
	if change != nil {
		change(&r)
	}
	return r
}

func TestEachDecisionIsCountedOnce(t *testing.T) {
	b := newBench(t,
		guard.Policy{Action: "login", Rules: []guard.Rule{
			rule("account", guard.ByAccount, 3, nil),
			rule("ip", guard.ByIP, 3, nil),
			rule("trial", guard.ByIP, 2, func(r *guard.Rule) { r.Effect = guard.Observe }),
			rule("mail", guard.ByIP, 2, func(r *guard.Rule) { r.Effect = guard.Silent }),
		}},
		guard.Policy{Action: "local", Rules: []guard.Rule{
			rule("account", guard.ByAccount, 3, func(r *guard.Rule) { r.OnOutage = guard.OutageLocal }),
		}})
	bob := guard.Attempt{Action: "login", Account: "bob", IP: here}
	for range 3 {
		_, err := b.Do(ctx, bob, func(context.Context, *guard.Pass) (bool, error) { return true, nil })
		require.NoError(t, err)
	}
	_, err := b.Do(ctx, bob, func(context.Context, *guard.Pass) (bool, error) { return false, guard.ErrBusy })
	require.ErrorIs(t, err, guard.ErrBusy)
	for range 3 {
		_, err = b.Do(ctx, bob, func(context.Context, *guard.Pass) (bool, error) { return false, nil })
		require.NoError(t, err)
	}
	for range 2 { // by account and ip
		_, err = b.Check(ctx, bob)
		require.ErrorAs(t, err, new(*guard.Denied))
	}
	require.NoError(t, b.Unlock(ctx, "bob", "login"))
	_, err = b.Check(ctx, guard.Attempt{Action: "login"}) // never settled
	require.NoError(t, err)
	b.store.down.Store(true)
	_, err = b.Check(ctx, bob)
	require.ErrorIs(t, err, guard.ErrUnavailable)
	pass, err := b.Check(ctx, guard.Attempt{Action: "local", Account: "bob"})
	require.NoError(t, err)
	require.NoError(t, pass.Fail(ctx))

	got := counted(gather(t, b.registry))
	delete(got, "memstore_keys{}")
	delete(got, "memstore_bytes{}")
	require.Equal(t, map[string]float64{
		"attempts_total{action=login,outcome=admitted}":         8,
		"attempts_total{action=login,outcome=refused}":          2,
		"attempts_total{action=login,outcome=unavailable}":      1,
		"attempts_total{action=local,outcome=admitted}":         1,
		"denials_total{action=login,effect=deny,rule=account}":  2,
		"denials_total{action=login,effect=deny,rule=ip}":       2,
		"denials_total{action=login,effect=observe,rule=trial}": 1,
		"denials_total{action=login,effect=silent,rule=mail}":   1,
		"settled_total{action=login,outcome=succeeded}":         3,
		"settled_total{action=login,outcome=cancelled}":         1,
		"settled_total{action=login,outcome=failed}":            3,
		"settled_total{action=local,outcome=failed}":            1,
		"unlocks_total{action=login}":                           1,
		"unaddressed_total{action=login}":                       1,
		"faults_total{action=login}":                            1,
		"faults_total{action=local}":                            1,
		"degraded_total{action=local}":                          1,
	}, got)
}

// puzzles is a Challenger that is solved by "right", and fails at "fault".
type puzzles struct{}

func (puzzles) Pose(token string) guard.Puzzle { return guard.Puzzle{Token: token} }
func (puzzles) Verify(_ context.Context, _, solution string, _ guard.Attempt) (bool, error) {
	if solution == "fault" {
		return false, errors.New("the service is down")
	}
	return solution == "right", nil
}

func TestAnswersToChallengesAreCounted(t *testing.T) {
	p := guard.Policy{Action: "login", Rules: []guard.Rule{
		rule("all", guard.Global, 1, func(r *guard.Rule) { r.Effect = guard.Challenge }), rule("ip", guard.ByIP, 9, nil)}}
	m, err := promguard.New([]guard.Policy{p})
	require.NoError(t, err)
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	g, err := guard.New(guard.Config{Store: memstore.New(memstore.Config{}), Secret: []byte(strings.Repeat("s", 32)),
		Policies: []guard.Policy{p}, Observer: m, Challenger: puzzles{}})
	require.NoError(t, err)
	token := ""
	for _, solution := range []string{"", "", "wrong", "fault", "right"} {
		pass, err := g.Check(ctx, guard.Attempt{Action: "login", Account: "bob", IP: here, Challenge: token + "." + solution})
		var denied *guard.Denied
		if errors.As(err, &denied) {
			token = denied.Challenge.Token
			continue
		}
		require.NoError(t, pass.Fail(ctx))
	}
	require.Equal(t, map[string]float64{
		"attempts_total{action=login,outcome=admitted}":         2,
		"attempts_total{action=login,outcome=refused}":          3,
		"challenges_total{action=login,outcome=solved}":         1,
		"challenges_total{action=login,outcome=unsolved}":       3, // and two without a token
		"challenges_total{action=login,outcome=unverified}":     1,
		"denials_total{action=login,effect=challenge,rule=all}": 4, // and one that was lifted
		"settled_total{action=login,outcome=failed}":            2,
	}, counted(gather(t, registry)))
}

// OB-01: clients, accounts and addresses, make no series.
func TestTenThousandAccountsMakeNoSeries(t *testing.T) {
	b := newBench(t, policies.Default()...)
	before := gather(t, b.registry)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := worker; i < 10_000; i += 4 {
				var addr [4]byte
				binary.BigEndian.PutUint32(addr[:], uint32(i))
				a := guard.Attempt{Action: "login", Account: fmt.Sprintf("user-%d@example.com", i), IP: netip.AddrFrom4(addr)}
				if pass, err := b.Check(ctx, a); err == nil {
					pass.Fail(ctx)
				}
			}
		})
	}
	wg.Wait()
	after := gather(t, b.registry)
	require.EqualValues(t, 10_000, after["authguard_attempts_total{action=login,outcome=admitted}"]+
		after["authguard_attempts_total{action=login,outcome=refused}"])
	require.Equal(t, slices.Sorted(maps.Keys(before)), slices.Sorted(maps.Keys(after)))
	for name := range after {
		require.NotContains(t, name, "example.com")
	}
}

// Nor do policies that are not those that were promised.
func TestWhatThePoliciesDoNotNameIsOther(t *testing.T) {
	m, err := promguard.New(policies.Default())
	require.NoError(t, err)
	for i := range 1000 {
		m.Observe(ctx, guard.Event{Kind: guard.Refused, Action: fmt.Sprint("action", i), Rule: fmt.Sprint("rule", i)})
		m.Observe(ctx, guard.Event{Kind: guard.Refused, Action: "login", Rule: fmt.Sprint("rule", i)})
	}
	r := prometheus.NewRegistry()
	require.NoError(t, r.Register(m))
	require.Equal(t, map[string]float64{
		"attempts_total{action=(other),outcome=refused}":            1000,
		"attempts_total{action=login,outcome=refused}":              1000,
		"denials_total{action=(other),effect=(other),rule=(other)}": 1000,
		"denials_total{action=login,effect=(other),rule=(other)}":   1000,
	}, counted(gather(t, r)))
}

func TestAllSeriesAreThereFromTheStart(t *testing.T) {
	b := newBench(t, policies.Default()...)
	series := gather(t, b.registry)
	for _, p := range policies.Default() {
		for _, name := range []string{
			"attempts_total{action=%s,outcome=admitted}", "attempts_total{action=%s,outcome=refused}", "attempts_total{action=%s,outcome=unavailable}",
			"settled_total{action=%s,outcome=succeeded}", "settled_total{action=%s,outcome=failed}", "settled_total{action=%s,outcome=cancelled}",
			"faults_total{action=%s}", "degraded_total{action=%s}", "unlocks_total{action=%s}", "unaddressed_total{action=%s}", "abandoned_refunds_total{action=%s}",
		} {
			require.Contains(t, series, "authguard_"+fmt.Sprintf(name, p.Action))
		}
		for _, r := range p.Rules {
			require.Contains(t, series, fmt.Sprintf("authguard_denials_total{action=%s,effect=%v,rule=%s}", p.Action, r.Effect, r.Name))
		}
	}
	require.Empty(t, slices.DeleteFunc(slices.Collect(maps.Keys(counted(series))), func(name string) bool {
		return name == "memstore_bytes{}" // the empty tables
	}))
}

// A kind of event that is new to this package must not go uncounted.
func TestEveryKindOfEventIsCounted(t *testing.T) {
	for kind := guard.Admitted; kind.String() != "unknown"; kind++ {
		m, err := promguard.New(policies.Default())
		require.NoError(t, err)
		r := prometheus.NewRegistry()
		require.NoError(t, r.Register(m))
		m.Observe(ctx, guard.Event{Kind: kind, Action: "login", Rule: "ip"})
		require.NotEmpty(t, counted(gather(t, r)), kind)
	}
}

// Not even a label that Prometheus could not hold is a panic.
func TestNewRefusesWhatIsNoPolicy(t *testing.T) {
	_, err := promguard.New([]guard.Policy{{Action: "lo\xffgin", Rules: []guard.Rule{rule("ip", guard.ByIP, 5, nil)}}})
	require.ErrorContains(t, err, "guard: policy action")
}

func TestMemoryTellsOfEvictions(t *testing.T) {
	s := memstore.New(memstore.Config{MaxBytes: 1})
	for i := range 10_000 {
		c := limiter.Charge{Key: fmt.Sprint(i), Limit: limiter.SlidingWindow{Limit: 9, Window: time.Hour}, Ask: limiter.Ask{Cost: 1}}
		_, err := s.Take(ctx, []limiter.Charge{c})
		require.NoError(t, err)
	}
	r := prometheus.NewPedanticRegistry()
	require.NoError(t, r.Register(promguard.Memory(s)))
	got, stats := gather(t, r), s.Stats()
	require.NotZero(t, stats.Evicted)
	require.Equal(t, map[string]float64{
		"authguard_memstore_keys{}":            float64(stats.Keys),
		"authguard_memstore_bytes{}":           float64(stats.Bytes),
		"authguard_memstore_evictions_total{}": float64(stats.Evicted),
		"authguard_memstore_full_total{}":      0,
	}, got)
}

func TestNamesKeepPrometheusConventions(t *testing.T) {
	problems, err := testutil.GatherAndLint(newBench(t, policies.Default()...).registry)
	require.NoError(t, err)
	require.Empty(t, problems)
}

// New policies have series of their own from the start, and what was called something
// else is still counted so.
func TestSeriesOfNewPolicies(t *testing.T) {
	before := guard.Policy{Action: "login", Rules: []guard.Rule{rule("account", guard.ByAccount, 1, nil)}}
	after := guard.Policy{Action: "login", Rules: []guard.Rule{rule("person", guard.ByAccount, 1, nil)}}
	m, err := promguard.New([]guard.Policy{before})
	require.NoError(t, err)
	require.Error(t, m.SetPolicies([]guard.Policy{{Action: "Login"}}))
	require.NoError(t, m.SetPolicies([]guard.Policy{after, {Action: "otp", Rules: after.Rules}}))
	registry := prometheus.NewPedanticRegistry()
	require.NoError(t, registry.Register(m))
	for _, name := range []string{"account", "person"} {
		m.Observe(ctx, guard.Event{Kind: guard.Refused, Action: "login", Rule: name})
	}
	got := gather(t, registry)
	require.Contains(t, got, "authguard_attempts_total{action=otp,outcome=refused}")
	delete(got, "authguard_attempts_total{action=login,outcome=refused}")
	require.Equal(t, map[string]float64{
		"denials_total{action=login,effect=deny,rule=account}": 1,
		"denials_total{action=login,effect=deny,rule=person}":  1,
	}, counted(got))
}
