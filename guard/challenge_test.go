package guard_test

import (
	"context"
	"encoding/base64"
	"errors"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// riddles is a Challenger whose solutions are the token with a word before it.
type riddles struct {
	asked atomic.Int64
	err   error
}

func (*riddles) Pose(token string) guard.Puzzle {
	return guard.Puzzle{Kind: "riddle", Token: token, Params: map[string]string{"ask": "what goes before"}}
}

func (r *riddles) Verify(ctx context.Context, token, solution string, _ guard.Attempt) (bool, error) {
	r.asked.Add(1)
	if _, bounded := ctx.Deadline(); !bounded {
		return false, errors.New("no deadline")
	}
	return solution == solve(token) && r.err == nil, r.err
}

func solve(token string) string { return "egg-" + token }

// answer solves what a was refused with.
func answer(d *guard.Denied) string { return d.Challenge.Token + "." + solve(d.Challenge.Token) }

func wired(c *guard.Config) { c.Challenger = &riddles{} }

// sprayed is a login that asks for a challenge at the third account an hour that an
// address fails at, and denies after ten failures.
func sprayed() guard.Policy {
	spraying := guard.Rule{Name: "spraying", By: guard.ByIP, Members: guard.ByAccount, Counts: guard.Failures, Effect: guard.Challenge,
		Limits: []limiter.Limit{limiter.Distinct{Limit: 2, Window: time.Hour}}}
	return login(accountRule(), ipRule(10), spraying)
}

func named(i int) string { return string(rune('a'+i)) + "@example.com" }

// asked makes the address fail at two accounts and is the refusal of a.
func (b bench) asked(t testing.TB, a guard.Attempt) *guard.Denied {
	t.Helper()
	b.fail(t, 1, by(named(0), here))
	b.fail(t, 1, by(named(1), here))
	return b.requireDenied(t, time.Hour, a)
}

func with(a guard.Attempt, answer string) guard.Attempt {
	a.Challenge = answer
	return a
}

func TestASolvedChallengeLiftsItsRulesAndNoOther(t *testing.T) {
	b := newBench(t, wired, sprayed())
	carol := by("carol", here)
	d := b.asked(t, carol)
	require.Equal(t, []string{"spraying"}, d.Rules)
	require.Equal(t, "riddle", d.Challenge.Kind)
	require.Equal(t, "what goes before", d.Challenge.Params["ask"])
	require.Regexp(t, `^[A-Za-z0-9_-]{50}$`, d.Challenge.Token)
	b.fail(t, 1, with(carol, answer(d)))
	require.Equal(t, 1, b.events.count(guard.Solved))
	require.Equal(t, 1, b.events.count(guard.Observed), "the rule that was lifted is told of")
	require.Equal(t, []int64{1, 3, 2}, b.used(t, carol), "deny rules count; the lifted one had no room")

	// Every further guess costs a challenge, and the address's limit ends them.
	for i := range 7 {
		a := by(named(10+i), here)
		b.fail(t, 1, with(a, answer(b.requireDenied(t, time.Hour, a))))
	}
	last := b.requireDenied(t, time.Hour, by("zoe", here))
	require.Nil(t, last.Challenge, "where a rule denies, solving would not help")
	require.Equal(t, []string{"spraying", "ip"}, last.Rules)
}

func TestALiftedRuleIsChargedIfItAdmits(t *testing.T) {
	b := newBench(t, wired, sprayed())
	d := b.asked(t, by("carol", here))
	b.clock.Advance(time.Minute)
	require.NoError(t, b.Unlock(ctx, "carol"))
	pass := b.requireAdmitted(t, by(named(0), here)) // makes room: it was right after all
	require.NoError(t, pass.Succeed(ctx))
	b.fail(t, 1, with(by("carol", here), answer(d)))
	require.Equal(t, int64(2), b.used(t, by("carol", here))[2])
}

// What nobody can be asked for denies where it counts one client, and only
// watches where it counts all.
func TestWithoutAChallengerRulesDenyOrObserve(t *testing.T) {
	all := guard.Rule{Name: "all", By: guard.Global, Counts: guard.Failures, Effect: guard.Challenge, Limits: window(2, time.Hour)}
	b := newBench(t, nil, login(ipRule(5), all))
	b.fail(t, 5, by("bob", here))
	require.Equal(t, 3, b.events.count(guard.Observed))
	require.Nil(t, b.requireDenied(t, 15*time.Minute, by("bob", here)).Challenge)
	elsewhere := netip.MustParseAddr("192.0.2.1")
	require.Len(t, b.requireAdmitted(t, with(by("bob", elsewhere), "x.y")).Limits(), 1)

	b = newBench(t, nil, sprayed())
	d := b.asked(t, by("carol", here))
	require.Nil(t, d.Challenge)
	require.Equal(t, []string{"spraying"}, d.Rules)

	b = newBench(t, wired, login(ipRule(5), all))
	b.fail(t, 2, by("bob", here))
	d = b.requireDenied(t, time.Hour, by("eve", elsewhere))
	require.Equal(t, []string{"all"}, d.Rules)
	b.requireAdmitted(t, with(by("eve", elsewhere), answer(d)))
}

// A wrong, expired, foreign or used answer is the same as none, and most of them
// bother no service.
func TestABadAnswerIsNone(t *testing.T) {
	r := &riddles{}
	other := sprayed()
	other.Action = "other"
	b := newBench(t, func(c *guard.Config) { c.Challenger = r }, sprayed(), other)
	carol := by("carol", here)
	first := b.asked(t, carol)
	for i := range 2 {
		a := by(named(i), here)
		a.Action = "other"
		b.fail(t, 1, a)
	}
	elsewhere := netip.MustParseAddr("192.0.2.1")
	for i := range 2 {
		b.fail(t, 1, by(named(i), elsewhere))
	}
	token := first.Challenge.Token
	raw, err := base64.RawURLEncoding.DecodeString(token)
	require.NoError(t, err)
	changed := func(at int) string {
		c := append([]byte{}, raw...)
		c[at] ^= 1
		text := base64.RawURLEncoding.EncodeToString(c)
		return text + "." + solve(text)
	}
	foreign := newBench(t, func(c *guard.Config) { wired(c); c.Secret = []byte("somebody else's secret of 32 b !") }, sprayed())
	theirs := answer(foreign.asked(t, carol))
	with50 := strings.Repeat("A", 50)
	onOther := carol
	onOther.Action = "other"
	for why, a := range map[string]guard.Attempt{
		"wrong":                 with(carol, token+".nonsense"),
		"no solution":           with(carol, token),
		"empty solution":        with(carol, token+"."),
		"no token":              with(carol, "."+solve("")),
		"a made-up token":       with(carol, with50+"."+solve(with50)),
		"too long":              with(carol, token+"."+strings.Repeat("x", 5000)),
		"padded token":          with(carol, token+"=."+solve(token+"=")),
		"line break in token":   with(carol, token[:49]+"\n"+token[49:]+"."+solve(token)),
		"line break for digit":  with(carol, token[:49]+"\n."+solve(token[:49]+"\n")),
		"more than a token":     with(carol, token+"AAAA."+solve(token+"AAAA")),
		"another version":       with(carol, changed(0)),
		"another expiry":        with(carol, changed(1)),
		"another nonce":         with(carol, changed(5)),
		"another MAC":           with(carol, changed(36)),
		"another account":       with(by("carla", here), answer(first)),
		"no account":            with(by("", here), answer(first)),
		"another address":       with(by("carol", elsewhere), answer(first)),
		"another action":        with(onOther, answer(first)),
		"another guard's":       with(carol, theirs),
		"an address of nothing": with(by("carol", netip.Addr{}), answer(first)),
	} {
		before, asked := b.events.count(guard.Unsolved), r.asked.Load()
		if a.IP.IsValid() {
			d := b.requireDenied(t, time.Hour, a)
			require.NotEqual(t, token, d.Challenge.Token, why)
		} else {
			require.NoError(t, b.guess(a), why) // another client, who was not asked
		}
		require.Equal(t, before+1, b.events.count(guard.Unsolved), why)
		if why != "wrong" && why != "empty solution" {
			require.Equal(t, asked, r.asked.Load(), why)
		}
	}
	b.clock.Advance(5*time.Minute - time.Second)
	b.requireAdmitted(t, with(carol, answer(first)))
	d := b.requireDenied(t, 55*time.Minute+time.Second, with(carol, answer(first)))
	require.Equal(t, 1, b.events.count(guard.Solved), "used")
	b.clock.Advance(5 * time.Minute)
	b.requireDenied(t, 50*time.Minute+time.Second, with(carol, answer(d))) // expired
	require.Equal(t, 1, b.events.count(guard.Solved))
}

// A spelling of the account and an address of the same IPv6 network are the same.
func TestAnAnswerIsForASubjectAsItIsCounted(t *testing.T) {
	b := newBench(t, func(c *guard.Config) { peopleNamed("carol", "ca").resolve(c); wired(c) }, sprayed())
	home, moved := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8::2")
	for i := range 2 {
		b.fail(t, 1, by(named(i), home))
	}
	d := b.requireDenied(t, time.Hour, by("Carol", home))
	b.requireAdmitted(t, with(by(" CAROL", moved), answer(d)))
}

// Nothing is known of a token until it has let somebody through.
func TestATokenIsUsedUpOnlyByWhatItLetThrough(t *testing.T) {
	b := newBench(t, wired, sprayed())
	carol := by("carol", here)
	d := b.asked(t, carol)
	b.fail(t, 5, by("carol", netip.MustParseAddr("192.0.2.7")))
	denied := b.requireDenied(t, 15*time.Minute, with(carol, answer(d)))
	require.Equal(t, []string{"account"}, denied.Rules)
	require.Nil(t, denied.Challenge, "which would not help")
	require.Zero(t, b.events.count(guard.Solved))
	require.Zero(t, b.events.count(guard.Unsolved))
	require.NoError(t, b.Unlock(ctx, "carol"))
	b.requireAdmitted(t, with(carol, answer(d)))

	b = newBench(t, wired, sprayed())
	d = b.asked(t, carol)
	pass := b.requireAdmitted(t, with(carol, answer(d)))
	require.NoError(t, pass.Cancel(ctx), "a fault of ours, before the secret was compared")
	pass = b.requireAdmitted(t, with(carol, answer(d)))
	require.NoError(t, pass.Shed(ctx), "no room")
	pass = b.requireAdmitted(t, with(carol, answer(d)))
	require.NoError(t, pass.Succeed(ctx))
	b.requireDenied(t, time.Hour, with(carol, answer(d)))
}

// New numbers of the limits in a rolling deploy change nothing of a challenge.
func TestAnAnswerOutlivesOtherNumbers(t *testing.T) {
	b := newBench(t, wired, sprayed())
	d := b.asked(t, by("carol", here))
	p := sprayed()
	p.Rules[1].Limits, p.Rules[2].Limits = window(7, 15*time.Minute), []limiter.Limit{limiter.Distinct{Limit: 1, Window: time.Hour}}
	newer := newBench(t, func(c *guard.Config) { wired(c); c.Store, c.Now = b.store, b.clock.Now }, p)
	_, err := newer.Check(ctx, by("carol", here))
	require.Error(t, err)
	_, err = newer.Check(ctx, with(by("carol", here), answer(d)))
	require.NoError(t, err)
	b.requireDenied(t, time.Hour, with(by("carol", here), answer(d)))
}

// A service that is down, or says nothing in time, is no yes; and no alarm is raised
// for a client that left.
func TestAChallengerThatFailsHasSolvedNothing(t *testing.T) {
	r := &riddles{err: errors.New("the service is down")}
	b := newBench(t, func(c *guard.Config) { c.Challenger = r }, sprayed())
	carol := by("carol", here)
	d := b.asked(t, carol)
	d = b.requireDenied(t, time.Hour, with(carol, answer(d)))
	require.NotNil(t, d.Challenge)
	require.Equal(t, 1, b.events.count(guard.Unverified))
	last := b.events.events[len(b.events.events)-2]
	require.ErrorIs(t, last.Err, r.err)
	require.Zero(t, b.events.count(guard.Unsolved), "which is another thing")
	gone, cancel := context.WithCancel(ctx)
	cancel()
	_, err := b.Check(gone, with(carol, answer(d)))
	require.Error(t, err)
	require.Equal(t, 1, b.events.count(guard.Unverified))
	r.err = nil
	b.requireAdmitted(t, with(carol, answer(d)))
}

func TestAChallengeInAnOutage(t *testing.T) {
	p := sprayed()
	for i := range p.Rules {
		p.Rules[i].OnOutage = guard.OutageLocal
	}
	var flaky *flakyStore
	local := func(c *guard.Config) {
		wired(c)
		if flaky == nil {
			flaky = &flakyStore{Store: c.Store}
		}
		c.Store, c.Instances = flaky, 2
	}
	b := newBench(t, local, p)
	second := newBench(t, local, p)
	flaky.down.Store(true)
	carol := by("carol", here)
	require.NoError(t, b.guess(by(named(0), here)))
	d := b.requireDenied(t, time.Hour, carol) // two accounts are one for each of two
	b.fail(t, 1, with(carol, answer(d)))
	b.requireDenied(t, time.Hour, with(carol, answer(d)))
	require.Equal(t, 1, b.events.count(guard.Solved))

	// The other process knows nothing of it: one use for each of them.
	require.NoError(t, second.guess(by(named(0), here)))
	require.NoError(t, second.guess(with(carol, answer(d))))
	second.requireDenied(t, time.Hour, with(carol, answer(d)))

	p.Rules[2].OnOutage = guard.OutageDeny
	strict := newBench(t, local, p)
	for _, a := range []guard.Attempt{carol, with(carol, "x.y")} {
		_, err := strict.Check(ctx, a)
		require.ErrorIs(t, err, guard.ErrUnavailable, "a rule that votes")
	}
	strictly := accountRule() // no rule counts locally, and the token all the same
	strictly.OnOutage = guard.OutageDeny
	p = login(strictly, p.Rules[2])
	b2 := newBench(t, local, p)
	flaky.down.Store(false)
	d = b2.asked(t, carol)
	flaky.down.Store(true)
	_, err := b2.Check(ctx, with(carol, answer(d)))
	require.ErrorIs(t, err, guard.ErrUnavailable)
}

// Attempts that all others' failures refuse wait for nobody.
func TestAGlobalChallengeIsAskedForAtOnce(t *testing.T) {
	all := guard.Rule{Name: "all", By: guard.Global, Counts: guard.Failures, Effect: guard.Challenge, Limits: window(2, time.Hour)}
	b := newBench(t, wired, login(accountRule(), all))
	b.requireAdmitted(t, by("ann", here))
	b.requireAdmitted(t, by("bob", here)) // neither is settled
	began := time.Now()
	require.NotNil(t, b.requireDenied(t, time.Hour, by("cem", here)).Challenge)
	require.Less(t, time.Since(began), time.Second)
}

// Without a Challenger, and on an attempt that no rule asks for one, an answer is
// neither read nor used up.
func TestAnAnswerThatNobodyAskedForIsNotRead(t *testing.T) {
	r := &riddles{}
	b := newBench(t, func(c *guard.Config) { c.Challenger = r }, login(accountRule()))
	b.requireAdmitted(t, with(by("bob", here), "anything.at all"))
	require.Zero(t, r.asked.Load())
	require.Zero(t, b.events.count(guard.Unsolved))
}

// Nothing but a token of ours with its solution is an answer.
func FuzzChallengeAnswer(f *testing.F) {
	clock := time.Unix(1_800_000_000, 0)
	now := func() time.Time { return clock }
	g, err := guard.New(guard.Config{Store: memstore.New(memstore.Config{Now: now}), Secret: secret, Now: now,
		Policies: []guard.Policy{sprayed()}, Challenger: &riddles{}})
	require.NoError(f, err)
	carol := by("carol", here)
	for i := range 2 {
		pass, err := g.Check(ctx, by(named(i), here))
		require.NoError(f, err)
		require.NoError(f, pass.Fail(ctx))
	}
	refused := func(a guard.Attempt) *guard.Denied {
		_, err := g.Check(ctx, a)
		var d *guard.Denied
		errors.As(err, &d)
		return d
	}
	ours := answer(refused(carol)) // one of another process is as good: none is among the seeds
	f.Add(ours[:50])
	f.Add(ours[:len(ours)-1])
	f.Add(".")
	f.Add(strings.Repeat("A", 50) + ".egg-" + strings.Repeat("A", 50))
	f.Fuzz(func(t *testing.T, text string) {
		if text == ours {
			return
		}
		require.NotNil(t, refused(with(carol, text)))
	})
}
