package guard_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
)

// poisonedStore cannot read the keys of some limits.
type poisonedStore struct {
	limiter.Store
	unreadable map[limiter.Limit]bool
	takes      int
}

func (s *poisonedStore) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	s.takes++
	for i, c := range charges {
		if s.unreadable[c.Limit] {
			return false, &limiter.ChargeError{Index: i, Err: limiter.ErrState}
		}
	}
	return s.Store.Take(ctx, charges)
}

var (
	fiveOf  = limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}
	sevenOf = limiter.SlidingWindow{Limit: 7, Window: 15 * time.Minute}
	nineOf  = limiter.SlidingWindow{Limit: 9, Window: 15 * time.Minute}
)

func newPoisoned(t *testing.T, unreadable []limiter.Limit, rules ...guard.Rule) (bench, *poisonedStore) {
	var poisoned *poisonedStore
	b := newBench(t, func(c *guard.Config) {
		poisoned = &poisonedStore{Store: c.Store, unreadable: map[limiter.Limit]bool{}}
		for _, l := range unreadable {
			poisoned.unreadable[l] = true
		}
		c.Store = poisoned
	}, login(rules...))
	return b, poisoned
}

func ruleOf(name string, by guard.By, o guard.Outage, limits ...limiter.Limit) guard.Rule {
	return guard.Rule{Name: name, By: by, Limits: limits, OnOutage: o}
}

// A value that cannot be read is for its own rule to answer; the other rules go on
// in the store.
func TestAPoisonedKeyIsItsOwnRulesError(t *testing.T) {
	account := func(o guard.Outage) guard.Rule { return ruleOf("account", guard.ByAccount, o, fiveOf) }
	ip := ruleOf("ip", guard.ByIP, guard.OutageDeny, sevenOf)

	b, _ := newPoisoned(t, []limiter.Limit{fiveOf}, account(guard.OutageDeny), ip)
	_, err := b.Check(ctx, by("bob", here))
	require.ErrorIs(t, err, guard.ErrUnavailable)
	require.ErrorIs(t, err, limiter.ErrState)
	require.Equal(t, []int64{0}, b.used(t, guard.Attempt{Action: "login", IP: here}), "nothing is charged")
	require.Equal(t, "account", b.events.events[0].Rule)

	b, _ = newPoisoned(t, []limiter.Limit{fiveOf}, account(guard.OutageAllow), ip)
	require.Equal(t, 7, b.attempts(t, 20, by("bob", here)), "the address still counts, in the store")
	require.Equal(t, []int64{7}, b.used(t, guard.Attempt{Action: "login", IP: here}))

	b, _ = newPoisoned(t, []limiter.Limit{fiveOf}, account(guard.OutageLocal), ip)
	require.Equal(t, 5, b.attempts(t, 20, by("bob", here)), "counted in this process")
	d := b.requireDenied(t, 15*time.Minute, by("bob", here))
	require.Equal(t, []string{"account"}, d.Rules)
	require.Equal(t, []int64{5}, b.used(t, guard.Attempt{Action: "login", IP: here}), "a local denial charges nothing in the store")
	require.Equal(t, 2, b.attempts(t, 20, by("eve", here)), "what is left to the address")
	d = b.requireDenied(t, 15*time.Minute, by("eve", here))
	require.Equal(t, []string{"ip"}, d.Rules, "a denial of the store gives back what was charged locally")
	b.clock.Advance(15 * time.Minute)
	require.Equal(t, 5, b.attempts(t, 20, by("eve", here)))
}

// Several unreadable values, limits of one rule, and the settling of both parts.
func TestSeveralPoisonedKeys(t *testing.T) {
	account := ruleOf("account", guard.ByAccount, guard.OutageLocal, fiveOf, nineOf)
	account.Counts = guard.Failures
	ip := ruleOf("ip", guard.ByIP, guard.OutageLocal, sevenOf)
	b, store := newPoisoned(t, []limiter.Limit{fiveOf, sevenOf}, account, ip)
	pass := b.requireAdmitted(t, by("bob", here))
	require.Equal(t, 3, store.takes, "one for each that fails, one for the rest")
	require.NoError(t, pass.Succeed(ctx))
	for range 4 {
		require.NoError(t, b.requireAdmitted(t, by("bob", here)).Succeed(ctx))
	}
	require.Equal(t, 2, b.attempts(t, 20, by("bob", here)), "of seven attempts by address, which a success keeps")
	require.Equal(t, []string{"ip"}, b.requireDenied(t, 15*time.Minute, by("bob", here)).Rules)
}

// The limits of a rule that never votes stay together, wherever they are counted.
func TestAPoisonedSilentRule(t *testing.T) {
	mails := ruleOf("mails", guard.ByAccount, guard.OutageLocal, fiveOf, nineOf)
	mails.Effect = guard.Silent
	b, store := newPoisoned(t, []limiter.Limit{nineOf}, mails, ruleOf("ip", guard.ByIP, guard.OutageDeny, limiter.SlidingWindow{Limit: 100, Window: time.Hour}))
	for i := range 12 {
		require.Equal(t, i >= 5, b.requireAdmitted(t, by("bob", here)).Silenced())
	}
	store.unreadable = nil
	require.False(t, b.requireAdmitted(t, by("bob", here)).Silenced(), "nothing of it is in the store")

	mails.OnOutage = guard.OutageDeny
	b, _ = newPoisoned(t, []limiter.Limit{nineOf}, mails, ruleOf("ip", guard.ByIP, guard.OutageDeny, sevenOf))
	require.True(t, b.requireAdmitted(t, by("bob", here)).Silenced())
}

// The store may go down altogether while a key of it is unreadable.
func TestAPoisonedKeyAndThenAnOutage(t *testing.T) {
	b, store := newPoisoned(t, []limiter.Limit{fiveOf}, ruleOf("account", guard.ByAccount, guard.OutageLocal, fiveOf), ruleOf("ip", guard.ByIP, guard.OutageLocal, sevenOf))
	require.Equal(t, 2, b.attempts(t, 2, by("bob", here)))
	store.Store = brokenStore{errDown}
	require.Equal(t, 3, b.attempts(t, 9, by("bob", here)), "three of five are left in this process")
	require.Equal(t, 4, b.attempts(t, 9, by("eve", here)), "and seven of the address, less those three")
}
