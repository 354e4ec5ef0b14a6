package guard_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// patientStreak counts consecutive failures and slows nobody down in these tests.
func patientStreak() guard.Rule {
	return guard.Rule{Name: "streak", By: guard.ByAccount, Counts: guard.Failures, Limits: []limiter.Limit{
		limiter.Backoff{Free: 10, Base: 30 * time.Second, Factor: 2, Max: time.Hour, LockAfter: 80, Forget: 7 * 24 * time.Hour, ForgetBeyond: 90 * 24 * time.Hour}}}
}

// together runs work n times at one instant.
func together(n int, work func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			work(i)
		})
	}
	close(start)
	wg.Wait()
}

func address(i int) netip.Addr { return netip.AddrFrom4([4]byte{203, 0, byte(i >> 8), byte(i)}) }

// AC-01: without a resolver each name of an account has a budget, and the
// address bounds them all.
func TestWithoutAResolverTheAddressBoundsAllNames(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(8)))
	b.fail(t, 5, by("alice", here))
	b.fail(t, 3, by("alice@example.com", here))
	require.Equal(t, []string{"ip"}, b.requireDenied(t, 15*time.Minute, by("alice@example.com", here)).Rules)
}

// AC-01, AC-02: three guesses at one account are three under all of its names,
// in whatever spelling; a name that nobody has is counted in all spellings, too.
func TestNoSpellingAndNoAliasBuysAGuess(t *testing.T) {
	b := newBench(t, func(c *guard.Config) {
		c.Resolve = func(_ context.Context, name string) (guard.Account, error) {
			return guard.Account{ID: map[string]string{"bob": "17", "bob@example.com": "17"}[name]}, nil
		}
	}, login(guard.Rule{Name: "account", By: guard.ByAccount, Limits: window(3, 15*time.Minute)}))
	for i, names := range [][]string{
		{"bob", "BOB", "bob@example.com", "Bob@Example.com", "ⓑob"},
		{"nobody", "NOBODY", "ｎobody", " nobody ", "no\u00adbody"},
	} {
		for range 3 {
			b.requireAdmitted(t, by(names[rand.IntN(len(names))], address(i)))
		}
		for _, name := range names {
			b.requireDenied(t, 15*time.Minute, by(name, here))
		}
	}
}

// AC-05: one normaliser for all actions. The keys of two actions differ only in
// the part that tells the action, for any account in any spelling.
func TestActionsAgreeOnWhoAnAccountIs(t *testing.T) {
	spy := &spyStore{}
	b := newBench(t, func(c *guard.Config) { spy.Store = c.Store; c.Store = spy },
		login(guard.Rule{Name: "account", By: guard.ByAccount, Limits: window(1000, time.Hour)}),
		guard.Policy{Action: "reset", Rules: []guard.Rule{{Name: "account", By: guard.ByAccount, Limits: window(1000, time.Hour)}}})
	parts := func(action, name string) (subject, limit string) {
		_, err := b.Check(ctx, guard.Attempt{Action: action, Account: name, IP: here})
		if err != nil { // no name at all
			require.ErrorIs(t, err, guard.ErrMissing)
			return "", ""
		}
		require.Len(t, spy.keys, 1)
		subject, limit, _ = strings.Cut(spy.keys[0], "}")
		return subject, limit
	}
	letters := []rune("aAbBßſẞKåÅéＡⓐﬁ1１ .@+-_\u00ad\u200bσςΣİı\u0301")
	rnd := rand.New(rand.NewPCG(5, 5))
	limits := map[string]bool{}
	for range 1_000 {
		name := make([]rune, 1+rnd.IntN(8))
		for i := range name {
			name[i] = letters[rnd.IntN(len(letters))]
		}
		subject, first := parts("login", string(name))
		again, second := parts("reset", string(name))
		require.Equal(t, subject, again, "%q", string(name))
		if subject != "" {
			require.NotEqual(t, first, second)
			limits[first], limits[second] = true, true
		}
	}
	require.Len(t, limits, 2, "the other part depends on nothing but action and rule")
}

// AC-07: a blank name leaves one record, of the address, and none of an account.
func TestABlankNameLeavesNoRecord(t *testing.T) {
	spray := guard.Rule{Name: "spraying", By: guard.ByIP, Members: guard.ByAccount, Limits: []limiter.Limit{limiter.Distinct{Limit: 10, Window: time.Hour}}}
	b := newBench(t, nil, login(accountRule(), patientStreak(), ipRule(20), spray))
	for _, blank := range []string{"", " ", "\t", "\u200b", "", "\u3000"} {
		b.fail(t, 1, by(blank, here))
	}
	require.Equal(t, 2, b.store.(*memstore.Store).Stats().Keys, "the address, under its two rules")
	require.Equal(t, []int64{6, 1}, b.used(t, by("", here)))
	require.Equal(t, []int64{0, 0, 0, 0}, b.used(t, by("bob", address(1))))
}

// LK-09: a success as oneself clears one's own streak, and nothing of the
// address or of the account that is guessed at.
func TestLoggingInAsOneselfRefreshesNoBudget(t *testing.T) {
	b := newBench(t, nil, login(patientStreak(), ipRule(5)))
	b.fail(t, 2, by("victim", here))
	b.fail(t, 1, by("mallory", here))
	b.fail(t, 1, by("victim", here))
	require.NoError(t, b.requireAdmitted(t, by("mallory", here)).Succeed(ctx))
	require.Equal(t, []int64{0, 4}, b.used(t, by("mallory", here)))
	require.Equal(t, []int64{3, 4}, b.used(t, by("victim", here)))
	b.fail(t, 1, by("victim", here))
	require.Equal(t, []string{"ip"}, b.requireDenied(t, 15*time.Minute, by("victim", here)).Rules, "the sixth charge")
	require.Equal(t, []string{"ip"}, b.requireDenied(t, 15*time.Minute, by("mallory", here)).Rules)
}

// LK-10: after failures and a success the streak is over, the window holds the
// failures until they age.
func TestASuccessEndsTheStreakAndTheWindowAges(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), patientStreak(), ipRule(20)))
	b.fail(t, 4, by("bob", here))
	require.NoError(t, b.requireAdmitted(t, by("bob", here)).Succeed(ctx))
	require.Equal(t, []int64{4, 0, 4}, b.used(t, by("bob", here)))
	b.clock.Advance(15*time.Minute - time.Microsecond)
	require.Equal(t, []int64{4, 0, 4}, b.used(t, by("bob", here)))
	b.clock.Advance(time.Microsecond)
	require.Equal(t, []int64{0, 0, 0}, b.used(t, by("bob", here)))
}

// RC-01, MC-02: a hundred times two hundred at one instant. Those who are denied
// charge no other rule either.
func TestTwoHundredAtOnceAHundredTimes(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(20)))
	for round := range 100 {
		a := by(fmt.Sprintf("user%d", round), address(round))
		var admitted atomic.Int64
		together(200, func(int) {
			if b.guess(a) == nil {
				admitted.Add(1)
			}
		})
		require.EqualValues(t, 5, admitted.Load())
		require.Equal(t, []int64{5, 5}, b.used(t, a))
	}
}

// RC-05, RC-08: no failure is lost among many at one instant, under any law that
// counts them, and none is found that was not made.
func TestNoParallelFailureIsLost(t *testing.T) {
	counter := guard.Rule{Name: "counter", By: guard.ByIP, Counts: guard.Failures, Limits: []limiter.Limit{limiter.SlidingWindowCounter{Limit: 1000, Window: time.Hour}}}
	spray := guard.Rule{Name: "spraying", By: guard.ByIP, Members: guard.ByAccount, Counts: guard.Failures, Limits: []limiter.Limit{limiter.Distinct{Limit: 100, Window: time.Hour}}}
	for round := range 50 {
		b := newBench(t, nil, login(accountRule(), patientStreak(), ipRule(100), counter, spray))
		n := 2 + round%4
		together(2*n, func(i int) {
			pass, err := b.Check(ctx, by(fmt.Sprintf("user%d", i%2), here))
			if err == nil {
				err = pass.Fail(ctx)
			}
			if err != nil {
				t.Error(err)
			}
		})
		all := int64(2 * n)
		require.Equal(t, []int64{int64(n), int64(n), all, all, 2}, b.used(t, by("user0", here)))
		require.Equal(t, []int64{int64(n), int64(n), all, all, 2}, b.used(t, by("user1", here)))
	}
}

// RC-01 for the laws that are not windows: a streak and different members.
func TestStreaksAndMembersAreBoundedAtOneInstant(t *testing.T) {
	for range 10 {
		spray := guard.Rule{Name: "spraying", By: guard.ByIP, Members: guard.ByAccount, Counts: guard.Failures, Limits: []limiter.Limit{limiter.Distinct{Limit: 10, Window: time.Hour}}}
		b := newBench(t, nil, login(streakRule()), guard.Policy{Action: "spray", Rules: []guard.Rule{spray}})
		var streaks, members atomic.Int64
		together(200, func(i int) {
			if b.guess(by("bob", address(i))) == nil {
				streaks.Add(1)
			}
			if b.guess(guard.Attempt{Action: "spray", Account: fmt.Sprintf("user%d", i), IP: here}) == nil {
				members.Add(1)
			}
		})
		require.EqualValues(t, 3, streaks.Load(), "the failures that are free")
		require.EqualValues(t, 10, members.Load())
	}
}

// RC-03: right answers of one account at one instant, as many as the limit, all pass.
func TestParallelSuccessesAllPass(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(20)))
	for range 30 {
		var passed atomic.Int64
		together(5, func(int) {
			ok, err := b.Do(ctx, by("bob", here), func(context.Context, *guard.Pass) (bool, error) { return true, nil })
			if ok && err == nil {
				passed.Add(1)
			}
		})
		require.EqualValues(t, 5, passed.Load())
	}
	require.Equal(t, []int64{0, 0}, b.used(t, by("bob", here)))
}

// PR-02, PR-03, PR-04: guesses at a code are the account's, from any number of
// addresses and through any number of codes; and issuing is bounded by itself.
func TestANewCodeAndANewAddressBuyNoGuess(t *testing.T) {
	mails := guard.Rule{Name: "mails", By: guard.ByAccount, Effect: guard.Silent, Limits: window(3, time.Hour)}
	b := newBench(t, nil,
		guard.Policy{Action: "code", Rules: []guard.Rule{accountRule()}},
		guard.Policy{Action: "issue", Rules: []guard.Rule{mails}})
	code := func(i int) guard.Attempt { return guard.Attempt{Action: "code", Account: "bob", IP: address(i)} }
	guesses, sent, n := 0, 0, 0
	for range 100 {
		for range 5 {
			n++
			if pass, err := b.Check(ctx, code(n)); err == nil {
				guesses++
				require.NoError(t, pass.Fail(ctx))
			}
			b.clock.Advance(time.Second)
		}
		if !b.requireAdmitted(t, guard.Attempt{Action: "issue", Account: "bob", IP: address(n)}).Silenced() {
			sent++
		}
	}
	require.Equal(t, 5, guesses)
	require.Equal(t, 3, sent)
	// Even the right code is refused until the window has aged.
	b.requireDenied(t, 400*time.Second, code(n))
	b.clock.Advance(400 * time.Second)
	require.NoError(t, b.requireAdmitted(t, code(n)).Succeed(ctx))
}

// ME-06: what is submitted may be of any size; what is stored is not.
func TestHugeNamesMakeNoHugeKeys(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	spy := &spyStore{}
	b := newBench(t, func(c *guard.Config) { spy.Store = c.Store; c.Store = spy }, login(accountRule(), ipRule(9)),
		guard.Policy{Action: "api", Rules: []guard.Rule{
			{Name: "key", By: guard.ByAPIKey, Limits: window(9, time.Hour)},
			{Name: "tenant", By: guard.ByTenant, Limits: window(9, time.Hour)},
			{Name: "order", By: guard.Part("order"), Limits: window(9, time.Hour)},
		}})
	pass := b.requireAdmitted(t, by(huge, here))
	require.Empty(t, pass.Account, "no account has such a name")
	require.Len(t, spy.keys, 1, "only the address is charged")
	b.requireAdmitted(t, guard.Attempt{Action: "api", APIKey: huge, Tenant: huge, Parts: map[string]string{"order": huge}})
	require.Len(t, spy.keys, 3)
	for _, key := range spy.keys {
		require.LessOrEqual(t, len(key), 128)
	}
	require.Less(t, b.store.(*memstore.Store).Stats().Bytes, 1<<20)
}
