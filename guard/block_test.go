package guard_test

import (
	"context"
	"errors"
	"fmt"
	"math"
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

var elsewhere = netip.MustParseAddr("203.0.113.7")

func ofAccount(name string) guard.Subject  { return guard.Subject{Account: name} }
func ofAddress(a netip.Addr) guard.Subject { return guard.Subject{IP: a} }
func at(addr string) netip.Addr            { return netip.MustParseAddr(addr) }
func another(action string) guard.Policy {
	return guard.Policy{Action: action, Rules: []guard.Rule{ipRule(20)}}
}
func (b bench) advance(d time.Duration) { b.clock.Advance(d) }
func (b bench) last() (e guard.Event)   { return b.events.events[len(b.events.events)-1] }
func (b bench) mustBlock(t *testing.T, who guard.Subject, d time.Duration) {
	t.Helper()
	require.NoError(t, b.Block(ctx, who, d))
}

func TestABlockedAccountIsRefusedUntilItEnds(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(20)), another("signup"))
	b.mustBlock(t, ofAccount("Bob"), time.Hour)
	b.advance(time.Minute)
	for range 10 {
		denied := b.requireDenied(t, 59*time.Minute, by("bob", here))
		require.Equal(t, []string{guard.BlockedRule}, denied.Rules)
		require.False(t, denied.Locked)
		for _, s := range denied.Limits() {
			require.NotEqual(t, guard.BlockedRule, s.Rule, "clients are told no counter of it")
		}
	}
	require.Equal(t, []int64{0, 0}, b.used(t, by("eve", here)), "nothing is charged for the blocked")
	b.requireAdmitted(t, by("eve", here))
	b.advance(59*time.Minute - time.Microsecond)
	b.requireDenied(t, time.Microsecond, by("bob", here))
	b.advance(time.Microsecond)
	b.requireAdmitted(t, by("bob", here))
}

func TestABlockedAddressIsRefusedInEveryAction(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(20)), another("signup"), guard.Policy{Action: "api", Rules: []guard.Rule{
		{Name: "key", By: guard.ByAPIKey, Limits: window(5, time.Minute)},
	}})
	b.mustBlock(t, ofAddress(at("2001:db8::1")), time.Hour)
	for _, addr := range []string{"2001:db8::1", "2001:db8::ffff:1", "2001:db8::1%eth0"} {
		for _, a := range []guard.Attempt{
			{Action: "login", Account: "bob"}, {Action: "login"}, {Action: "signup"}, {Action: "api", APIKey: "k"},
		} {
			a.IP = at(addr)
			b.requireDenied(t, time.Hour, a)
		}
	}
	b.requireAdmitted(t, by("bob", at("2001:db8:0:1::1")))
	b.requireAdmitted(t, guard.Attempt{Action: "api", APIKey: "k"})
	b.mustBlock(t, ofAddress(at("::ffff:203.0.113.7")), time.Hour)
	b.requireDenied(t, time.Hour, by("bob", elsewhere))
}

// What strangers bring about by counting keeps known devices in; what an operator
// says holds for them, too.
func TestABlockHoldsForTrustedClients(t *testing.T) {
	p := peopleNamed("bob")
	b := newBench(t, p.resolve, classes())
	cookie, _ := b.trust(t, p["bob"], "")
	a := on(cookie, "bob")
	a.IP = here
	require.True(t, b.requireAdmitted(t, a).Trusted())
	for _, who := range []guard.Subject{ofAccount("bob"), ofAddress(here)} {
		b.mustBlock(t, who, time.Hour)
		b.requireDenied(t, time.Hour, a)
		require.NoError(t, b.Unblock(ctx, who))
		b.requireAdmitted(t, a)
	}
}

func TestTheLongerBlockStandsAndUnblockEndsIt(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	b.mustBlock(t, ofAccount("bob"), time.Hour)
	b.mustBlock(t, ofAccount("bob"), time.Minute)
	require.Equal(t, time.Hour, b.last().RetryAfter, "the event tells what stands")
	b.requireDenied(t, time.Hour, by("bob", here))
	b.mustBlock(t, ofAccount("bob"), 2*time.Hour)
	b.requireDenied(t, 2*time.Hour, by("bob", here))
	require.NoError(t, b.Unblock(ctx, ofAccount("BOB")))
	b.requireAdmitted(t, by("bob", here))
	require.NoError(t, b.Unblock(ctx, ofAccount("bob")), "there is none")
}

// LK-06: a reset lifts what guesses have brought about, and no operator's decision.
func TestUnlockLeavesABlock(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	b.fail(t, 5, by("bob", here))
	b.mustBlock(t, ofAccount("bob"), time.Hour)
	require.NoError(t, b.Unlock(ctx, "bob"))
	b.requireDenied(t, time.Hour, by("bob", here))
	require.NoError(t, b.Unblock(ctx, ofAccount("bob")))
	require.Equal(t, []int64{0}, b.used(t, by("bob", here)))
	b.fail(t, 5, by("bob", here))
	require.NoError(t, b.Unblock(ctx, ofAccount("bob")))
	b.requireDenied(t, 15*time.Minute, by("bob", here))
}

// An alias is the account that it names.
func TestABlockIsOfTheAccountAndNotOfItsName(t *testing.T) {
	b := newBench(t, func(c *guard.Config) {
		c.Resolve = func(_ context.Context, name string) (guard.Account, error) {
			switch name {
			case "bob", "robert":
				return guard.Account{ID: "7"}, nil
			case "broken":
				return guard.Account{}, errors.New("the database is down")
			}
			return guard.Account{}, nil
		}
	}, login(accountRule()))
	b.mustBlock(t, ofAccount("robert"), time.Hour)
	b.requireDenied(t, time.Hour, by("bob", here))
	b.mustBlock(t, ofAccount("nobody"), time.Hour)
	b.requireDenied(t, time.Hour, by("nobody", here))
	require.NoError(t, b.Unblock(ctx, ofAccount("bob")))
	b.requireAdmitted(t, by("robert", here))
	require.ErrorIs(t, b.Block(ctx, ofAccount("broken"), time.Hour), guard.ErrUnavailable)
}

func TestBlocksAreAudited(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	b.mustBlock(t, ofAccount("bob"), time.Hour)
	e := b.last()
	require.Equal(t, guard.Event{Kind: guard.Blocked, By: guard.ByAccount, Subject: e.Subject, RetryAfter: time.Hour}, e)
	require.NotContains(t, fmt.Sprintf("%+v", e), "bob")
	require.Error(t, b.guess(by("bob", here)))
	refused := b.last()
	require.Equal(t, guard.Event{Kind: guard.Refused, Action: "login", Rule: guard.BlockedRule, Subject: e.Subject, RetryAfter: time.Hour}, refused)
	require.NoError(t, b.Unblock(ctx, ofAccount("bob")))
	require.Equal(t, guard.Event{Kind: guard.Unblocked, By: guard.ByAccount, Subject: e.Subject}, b.last())
	b.mustBlock(t, ofAddress(here), time.Hour)
	require.Equal(t, guard.ByIP, b.last().By)
}

func TestWhatIsNoBlockIsRefused(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	for _, d := range []time.Duration{0, -time.Hour, time.Second - 1, limiter.MaxBlock + 1, math.MaxInt64} {
		require.ErrorContains(t, b.Block(ctx, ofAccount("bob"), d), "a block is for")
	}
	require.NoError(t, b.Block(ctx, ofAccount("bob"), time.Second+1))
	for _, who := range []guard.Subject{{}, ofAccount(strings.Repeat("x", 257)), ofAccount("\x00"), ofAccount("  ")} {
		require.ErrorIs(t, b.Block(ctx, who, time.Hour), guard.ErrMissing)
		require.ErrorIs(t, b.Unblock(ctx, who), guard.ErrMissing)
	}
	require.ErrorContains(t, b.Block(ctx, guard.Subject{Account: "bob", IP: here}, time.Hour), "want one of them")
	require.ErrorIs(t, new(guard.Guard).Block(ctx, ofAccount("bob"), time.Hour), guard.ErrNoPolicy)
	require.ErrorIs(t, (*guard.Guard)(nil).Unblock(ctx, ofAccount("bob")), guard.ErrNoPolicy)

	for _, name := range []string{guard.BlockedRule, guard.DeniedRule} {
		r := accountRule()
		r.Name = name
		_, err := guard.New(guard.Config{Store: b.store, Secret: secret, Policies: []guard.Policy{login(r)}})
		require.ErrorContains(t, err, "is the guard's own")
	}
	r := accountRule()
	r.Limits = []limiter.Limit{limiter.Block{For: time.Hour}}
	r.Counts = guard.Attempts
	_, err := guard.New(guard.Config{Store: b.store, Secret: secret, Policies: []guard.Policy{login(r)}})
	require.ErrorContains(t, err, "which Guard.Block makes")
}

// An attempt that names nobody must stay none, although its address could be blocked.
func TestBlocksMakeNoAttemptOfNothing(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	_, err := b.Check(ctx, by("", here))
	require.ErrorIs(t, err, guard.ErrNoAccount)
	_, err = b.Check(ctx, by("", netip.Addr{}))
	require.ErrorIs(t, err, guard.ErrNoAccount)
	require.Len(t, b.Policies()[0].Rules, 1, "policies are told as they were given")
}

// switchable fails while it is down.
type switchable struct {
	limiter.Store
	down atomic.Bool
}

func (s *switchable) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	if s.down.Load() {
		return false, errDown
	}
	return s.Store.Take(ctx, charges)
}

func (s *switchable) Forget(ctx context.Context, keys []string) error {
	if s.down.Load() {
		return errDown
	}
	return s.Store.Forget(ctx, keys)
}

// While the store is down a process knows of the blocks that it has made itself, and
// of no others; a rule that denies in outages lets nobody pass anyway.
func TestBlocksInAnOutage(t *testing.T) {
	store := new(switchable)
	localRule := accountRule()
	localRule.OnOutage = guard.OutageLocal
	open := func(c *guard.Config) {
		store.Store = memstore.New(memstore.Config{Now: c.Now})
		c.Store = store
	}
	one := newBench(t, open, login(localRule), guard.Policy{Action: "strict", Rules: []guard.Rule{accountRule()}})
	two := newBench(t, func(c *guard.Config) { c.Store = store }, login(localRule))
	one.mustBlock(t, ofAccount("bob"), time.Hour)
	one.requireDenied(t, time.Hour, by("bob", here))
	two.requireDenied(t, time.Hour, by("bob", here))
	store.down.Store(true)
	one.requireDenied(t, time.Hour, by("bob", here))
	two.requireAdmitted(t, by("bob", here))
	strict := by("bob", here)
	strict.Action = "strict"
	_, err := one.Check(ctx, strict)
	require.ErrorIs(t, err, guard.ErrUnavailable)

	require.ErrorIs(t, one.Block(ctx, ofAccount("eve"), time.Hour), guard.ErrUnavailable)
	one.requireDenied(t, time.Hour, by("eve", here))
	require.ErrorIs(t, one.Unblock(ctx, ofAccount("bob")), guard.ErrUnavailable)
	one.requireAdmitted(t, by("bob", here))
	store.down.Store(false)
	one.requireDenied(t, time.Hour, by("bob", here))
	one.requireAdmitted(t, by("eve", here))
}

// Nobody passes between a block that has returned and its end, whoever else checks,
// blocks and unblocks meanwhile.
func TestBlocksUnblocksAndChecksAtOneTime(t *testing.T) {
	b := newBench(t, nil, login(guard.Rule{Name: "ip", By: guard.ByIP, Limits: []limiter.Limit{limiter.SlidingWindowCounter{Limit: 1_000_000, Window: time.Hour}}}))
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for n := range 4 {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if pass, err := b.Check(ctx, by("bob", here)); err == nil {
					pass.Succeed(ctx)
				}
				other := at(fmt.Sprintf("203.0.113.%d", n))
				b.Block(ctx, ofAddress(other), time.Hour)
				b.Unblock(ctx, ofAddress(other))
			}
		})
	}
	for range 200 {
		require.NoError(t, b.Block(ctx, ofAddress(here), time.Hour))
		for range 5 {
			_, err := b.Check(ctx, by("bob", here))
			require.ErrorAs(t, err, new(*guard.Denied))
		}
		require.NoError(t, b.Unblock(ctx, ofAddress(here)))
		_, err := b.Check(ctx, by("bob", here))
		require.NoError(t, err)
	}
	close(stop)
	busy.Wait()
}

func TestInspectTellsABlock(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(20)))
	b.mustBlock(t, ofAccount("bob"), time.Hour)
	b.mustBlock(t, ofAddress(here), 2*time.Hour)
	status, err := b.Inspect(ctx, by("BOB", here))
	require.NoError(t, err)
	require.Len(t, status, 4)
	for i, want := range []struct {
		by   guard.By
		wait time.Duration
	}{{guard.ByAccount, time.Hour}, {guard.ByIP, 2 * time.Hour}} {
		s := status[2+i]
		require.Equal(t, guard.BlockedRule, s.Rule)
		require.Equal(t, want.by, s.By)
		require.Equal(t, want.wait, s.Decision.RetryAfter)
	}
	status, err = b.Inspect(ctx, by("eve", netip.Addr{}))
	require.NoError(t, err)
	require.Len(t, status, 1, "who is not blocked has no such rule")
}

// askedBlocks notes the keys of the last Take that only ask for a block.
type askedBlocks struct {
	limiter.Store
	keys []string
}

func (s *askedBlocks) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	s.keys = nil
	for _, c := range charges {
		if _, block := c.Limit.(limiter.Block); block {
			s.keys = append(s.keys, c.Key)
		}
	}
	return s.Store.Take(ctx, charges)
}

// What an attempt does not have is not asked about: else all without an address would
// meet at one key of the store.
func TestBlocksAreAskedForWhatAnAttemptHas(t *testing.T) {
	store := new(askedBlocks)
	b := newBench(t, func(c *guard.Config) {
		store.Store = memstore.New(memstore.Config{Now: c.Now})
		c.Store = store
	}, login(accountRule(), ipRule(20)))
	for want, a := range map[int][]guard.Attempt{
		2: {by("bob", here)}, 1: {by("", here), by("bob", netip.Addr{})}, 0: {by("", netip.Addr{})},
	} {
		for _, attempt := range a {
			b.requireAdmitted(t, attempt)
			require.Len(t, store.keys, want, "%+v", attempt)
		}
	}
}
