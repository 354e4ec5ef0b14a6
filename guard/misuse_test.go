package guard

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// A guard a request is noticed, once; a server that starts is none.
func TestManyGuardsInAMinuteAreNoticedOnce(t *testing.T) {
	var c guardCounter
	now := time.Unix(1_800_000_000, 0)
	noticed := 0
	create := func(n int, every time.Duration) {
		for range n {
			if c.often(now) {
				noticed++
			}
			now = now.Add(every)
		}
	}
	create(manyGuards-1, 0)
	require.Zero(t, noticed)
	now = now.Add(time.Minute)
	create(manyGuards-1, time.Millisecond)
	now = now.Add(time.Minute)
	create(10*manyGuards, time.Minute/(manyGuards*9/10))
	require.Zero(t, noticed, "never so many in one minute")
	now = now.Add(time.Minute)
	create(5*manyGuards, time.Millisecond)
	require.Equal(t, 1, noticed)
}

// ST-12: in memory, limits hold once an instance.
func TestAMemoryStoreOfSeveralInstancesIsNoticed(t *testing.T) {
	var log testkit.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	for _, instances := range []int{0, 1, 3} {
		_, err := New(Config{
			Store: memstore.New(memstore.Config{}), Secret: []byte("sixteen bytes or more"), Instances: instances,
			Policies: []Policy{{Action: "a", Rules: []Rule{{Name: "r", By: ByIP, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 1, Window: time.Minute}}}}}},
		})
		require.NoError(t, err)
		require.Equal(t, instances > 1, strings.Contains(log.String(), "share a store"), instances)
	}
}

// A rule that could never deny is an error, not a comfort.
func TestDifferentMembersOfWhoHasOnlyOneAreRefused(t *testing.T) {
	for _, c := range []struct {
		by, members By
		ok          bool
	}{
		{ByIP, ByAccount, true},
		{ByAccount, ByIP, true},
		{IPPrefix(48), ByIP, true},
		{Global, ByAccount, true},
		{ByTenant, Part("city"), true},
		{ByAccount, ByAccount, false},
		{ByIP, ByIP, false},
		{ByIP, IPPrefix(48), false},
		{ByIPAndAccount, ByAccount, false},
		{ByIPAndAccount, ByIP, false},
		{ByAPIKey, Global, false},
	} {
		err := Rule{Name: "r", By: c.by, Members: c.members, Limits: []limiter.Limit{limiter.Distinct{Limit: 3, Window: time.Hour}}}.Validate()
		if c.ok {
			require.NoError(t, err, "%v by %v", c.members, c.by)
		} else {
			require.ErrorContains(t, err, "can never deny", "%v by %v", c.members, c.by)
		}
	}
}

func TestPoliciesAreThoseInForce(t *testing.T) {
	limits := []limiter.Limit{limiter.SlidingWindow{Limit: 1, Window: time.Minute}}
	given := []Policy{{Action: "b", Rules: []Rule{{Name: "r", By: ByIP, Limits: limits}}}, {Action: "a", Rules: []Rule{{Name: "r", By: Global, Limits: limits}}}}
	g, err := New(Config{Store: memstore.New(memstore.Config{}), Secret: []byte("sixteen bytes or more"), Policies: given})
	require.NoError(t, err)
	require.Equal(t, []Policy{given[1], given[0]}, g.Policies())
	g.Policies()[0].Rules[0].Name = "changed"
	require.Equal(t, "r", g.Policies()[0].Rules[0].Name)
	require.Empty(t, (*Guard)(nil).Policies())
}
