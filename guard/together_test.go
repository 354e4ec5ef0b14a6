package guard_test

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
)

// Each of these has tests of its own; here they are all there at one time: two
// secrets, challenges, blocks and an allow list, for clients with and without an
// address or an account, in the store and in an outage.
func TestChallengesBlocksListsAndTwoSecretsTogether(t *testing.T) {
	for _, down := range []bool{false, true} {
		p := sprayed()
		for i := range p.Rules {
			p.Rules[i].OnOutage = guard.OutageLocal
		}
		var flaky *flakyStore
		b := newBench(t, func(c *guard.Config) {
			wired(c)
			flaky = &flakyStore{Store: c.Store}
			c.Store, c.PreviousSecret, c.Secret = flaky, secret, nextSecret
			c.Lists.AllowAddresses = prefixes("192.0.2.0/24")
		}, p)
		flaky.down.Store(down)
		office := at("192.0.2.1")
		for _, addr := range []netip.Addr{here, {}} {
			carol := by("carol", addr)
			b.fail(t, 1, by(named(0), addr))
			b.fail(t, 1, by(named(1), addr))
			d := b.requireDenied(t, time.Hour, carol)
			require.Equal(t, []string{"spraying"}, d.Rules)

			b.block(t, down, ofAccount("carol"), time.Hour)
			for _, blocked := range []guard.Attempt{with(carol, answer(d)), by("carol", office)} {
				refused := b.requireDenied(t, time.Hour, blocked)
				require.Equal(t, []string{guard.BlockedRule}, refused.Rules, "no answer and no list lifts a block")
				require.Nil(t, refused.Challenge)
			}
			require.NoError(t, b.Unblock(ctx, ofAccount("carol")))
			require.NoError(t, b.requireAdmitted(t, with(carol, answer(d))).Fail(ctx))
			require.Equal(t, []string{"spraying"}, b.requireDenied(t, time.Hour, with(carol, answer(d))).Rules, "an answer is good once")
			b.requireAdmitted(t, by("", office))
		}
		b.block(t, down, ofAddress(here), time.Hour)
		b.block(t, down, ofAddress(office), time.Hour)
		for _, addr := range []netip.Addr{here, office} {
			for _, name := range []string{"dora", ""} {
				require.Contains(t, b.requireDenied(t, time.Hour, by(name, addr)).Rules, guard.BlockedRule)
			}
		}
	}
}

// block blocks; while the store is down, in this process alone.
func (b bench) block(t *testing.T, down bool, who guard.Subject, d time.Duration) {
	t.Helper()
	err := b.Block(ctx, who, d)
	if !down {
		require.NoError(t, err)
		return
	}
	require.ErrorIs(t, err, guard.ErrUnavailable)
}

// A rule that is counted here because its key cannot be read comes after those in the
// store, and is not overlooked behind one of them that denies.
func TestASilentRuleThatIsCountedHereIsHeardBehindOthers(t *testing.T) {
	mails := ruleOf("mails", guard.ByAccount, guard.OutageLocal, fiveOf)
	mails.Effect = guard.Silent
	trial := ruleOf("trial", guard.ByAccount, guard.OutageLocal, limiter.SlidingWindow{Limit: 1, Window: time.Hour})
	trial.Effect = guard.Observe
	b, _ := newPoisoned(t, []limiter.Limit{fiveOf}, mails, trial, ruleOf("ip", guard.ByIP, guard.OutageDeny, nineOf))
	for i := range 7 {
		require.Equal(t, i >= 5, b.requireAdmitted(t, by("bob", here)).Silenced())
	}
	require.Equal(t, 2, b.events.count(guard.Silenced))
	require.Equal(t, 6, b.events.count(guard.Observed))
}

// Lists follow their file while attempts are checked; what is no list changes nothing.
func TestListsAreReplacedUnderWay(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(2)))
	b.fail(t, 2, by("bob", here))
	b.requireDenied(t, 15*time.Minute, by("bob", here))
	require.NoError(t, b.SetLists(guard.Lists{AllowAddresses: prefixes("198.51.100.0/24"), DenyAccounts: []string{"root"}}))
	b.requireAdmitted(t, by("bob", here))
	b.requireDenied(t, time.Hour, by("ROOT", here))
	require.ErrorContains(t, b.SetLists(guard.Lists{DenyAccounts: []string{" "}}), "entry 0 is no account name")
	require.ErrorContains(t, b.SetLists(guard.Lists{AllowAddresses: prefixes("0.0.0.0/0")}), "AllowAddresses has 0.0.0.0/0")
	b.requireDenied(t, time.Hour, by("root", here))
	require.NoError(t, b.SetLists(guard.Lists{}))
	require.Equal(t, []string{"ip"}, b.requireDenied(t, 15*time.Minute, by("root", here)).Rules)
	require.ErrorIs(t, new(guard.Guard).SetLists(guard.Lists{}), guard.ErrNoPolicy)

	var busy sync.WaitGroup
	for i := range 4 {
		busy.Go(func() {
			for range 200 {
				_, _ = b.Check(ctx, by(named(i), here))
				if err := b.SetLists(guard.Lists{DenyAddresses: prefixes("198.51.100.0/24")}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	busy.Wait()
	require.Equal(t, []string{guard.DeniedRule}, b.requireDenied(t, time.Hour, by("bob", here)).Rules)
}
