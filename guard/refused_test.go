package guard_test

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// names are those that are listed, once as many are as are wanted: notes are written
// a moment after the attempt.
func (b bench) names(t *testing.T, want ...string) {
	t.Helper()
	var names []string
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		refused, err := b.Refused(ctx, 10_000)
		require.NoError(c, err)
		names = names[:0]
		for _, r := range refused {
			names = append(names, strings.TrimPrefix(r.Action+"/"+r.Rule+" "+r.Name, "/"))
		}
		require.ElementsMatch(c, want, names)
	}, 10*time.Second, 2*time.Millisecond)
}

func TestRefusedListsWhoIsRefusedNow(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(7)))
	b.fail(t, 4, by("Bob", here))
	b.names(t)
	b.fail(t, 1, by("Bob", here))
	b.names(t, "login/account bob")
	for range 100 {
		require.Error(t, b.guess(by("bob", here)))
	}
	b.fail(t, 2, by("", here))
	b.names(t, "login/account bob", "login/ip 198.51.100.9/32")
	refused, err := b.Refused(ctx, 10)
	require.NoError(t, err)
	require.Equal(t, 15*time.Minute, refused[0].Decision.RetryAfter)
	require.EqualValues(t, 5, refused[0].Used())
	require.Equal(t, guard.ByAccount, refused[0].By)
	refused, err = b.Refused(ctx, 1)
	require.NoError(t, err)
	require.Len(t, refused, 1)

	require.NoError(t, b.Unlock(ctx, "bob"))
	b.names(t, "login/ip 198.51.100.9/32")
	b.advance(15 * time.Minute)
	b.names(t)
}

// LK-09: an attempt that was right took nothing, so it is no refusal.
func TestASuccessIsNotListed(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	b.fail(t, 4, by("bob", here))
	pass := b.requireAdmitted(t, by("bob", here))
	b.names(t, "login/account bob")
	require.NoError(t, pass.Succeed(ctx))
	b.names(t)
	b.fail(t, 1, by("bob", here))
	b.names(t, "login/account bob")
}

func TestBlocksAndLocksAreListed(t *testing.T) {
	b := newBench(t, nil, login(streakRule()), another("signup"))
	b.mustBlock(t, ofAccount("eve"), time.Hour)
	b.mustBlock(t, ofAddress(at("2001:db8::7")), time.Hour)
	b.names(t, "blocked eve", "blocked 2001:db8::/64")
	b.exhaust(t, by("bob", here))
	b.names(t, "blocked eve", "blocked 2001:db8::/64", "login/"+streakRule().Name+" bob")
	require.NoError(t, b.Unblock(ctx, ofAccount("eve")))
	b.names(t, "blocked 2001:db8::/64", "login/"+streakRule().Name+" bob")
	refused, err := b.Refused(ctx, 10)
	require.NoError(t, err)
	for _, r := range refused {
		require.Equal(t, r.Rule != guard.BlockedRule, r.Decision.Locked)
	}
}

// What an operator sees of hostile names is what was sent, cut to size.
func TestHostileNamesAreListedAsTheyAre(t *testing.T) {
	perTenant := guard.Policy{Action: "api", Rules: []guard.Rule{
		{Name: "tenant", By: guard.ByTenant, Limits: window(1, time.Hour)},
		{Name: "key", By: guard.ByAPIKey, Limits: window(1, time.Hour)},
	}}
	b := newBench(t, func(c *guard.Config) { c.Opaque = true }, login(guard.Rule{Name: "account", By: guard.ByAccount, Limits: window(1, time.Hour)}), perTenant)
	var want []string
	for _, name := range []string{"\x1b[2Jbob", "a\nb", "{x}", "*", "login/account eve", strings.Repeat("x", 256), " "} {
		b.fail(t, 1, by(name, here))
		want = append(want, "login/account "+name)
	}
	b.fail(t, 1, guard.Attempt{Action: "api", Tenant: strings.Repeat("é", 1<<16), APIKey: "a secret key"})
	want = append(want, "api/tenant "+strings.Repeat("é", 128), "api/key ")
	b.names(t, want...)
}

// OB-04: a store learns no name from a note, and what it makes of one is not read.
func TestLabelsAreSealed(t *testing.T) {
	b := newBench(t, nil, login(accountRule(), ipRule(5)))
	b.fail(t, 5, by("bob@example.com", here))
	b.names(t, "login/account bob@example.com", "login/ip 198.51.100.9/32")
	store := b.store.(*memstore.Store)
	var notes []limiter.Note
	refused, err := b.Refused(ctx, 10)
	require.NoError(t, err)
	require.Len(t, refused, 2)
	for _, list := range b.lists(t) {
		some, err := store.Noted(ctx, []string{list})
		require.NoError(t, err)
		notes = append(notes, some...)
	}
	require.Len(t, notes, 2)
	for _, n := range notes {
		for _, clear := range []string{"bob", "example", "198.51"} {
			require.NotContains(t, n.Key+string(n.Label)+n.List, clear)
		}
	}
	tell := func() (names []string) {
		refused, err := b.Refused(ctx, 10)
		require.NoError(t, err)
		for _, r := range refused {
			names = append(names, r.Name)
		}
		return names
	}
	put := func(n limiter.Note) { require.NoError(t, store.Note(ctx, []limiter.Note{n})) }

	swapped := notes[0] // somebody else's label, sealed for another key
	swapped.Label = notes[1].Label
	put(swapped)
	require.Contains(t, tell(), "")
	require.NotContains(t, tell()[0]+tell()[1], "bob")
	for i := range notes[0].Label {
		bent := notes[0]
		bent.Label = append([]byte(nil), bent.Label...)
		bent.Label[i] ^= 1
		put(bent)
		require.Contains(t, tell(), "", "byte %d", i)
	}
	for _, label := range []string{"", "x", strings.Repeat("\x00", 64)} {
		bent := notes[0]
		bent.Label = []byte(label)
		put(bent)
		require.Contains(t, tell(), "")
	}
	put(notes[0])
	require.NotContains(t, tell(), "")

	// Keys that are none, or are of another list, are passed over.
	for _, key := range []string{"", "x", strings.Repeat("x", 29), "ag:{0000000000000000}00000000", notes[1].Key} {
		put(limiter.Note{List: notes[0].List, Key: key, Label: notes[0].Label, Until: notes[0].Until})
	}
	require.Len(t, tell(), 2)

	// Another secret has other lists.
	stranger := newBench(t, func(c *guard.Config) { c.Store, c.Secret = store, []byte("another secret, 32 bytes long !!") }, login(accountRule(), ipRule(5)))
	stranger.names(t)
}

// lists are those of the guard's keys, found by asking for what it has charged.
func (b bench) lists(t *testing.T) (lists []string) {
	t.Helper()
	spy := &spyStore{Store: memstore.New(memstore.Config{Now: b.clock.Now})}
	other, err := guard.New(guard.Config{Store: spy, Secret: secret, Policies: b.Policies(), Now: b.clock.Now})
	require.NoError(t, err)
	_, err = other.Check(ctx, by("x", here))
	require.NoError(t, err)
	for _, key := range spy.keys {
		lists = append(lists, key[len(key)-8:])
	}
	return lists
}

// A million invented names cost their own attempts and a bounded list; who was listed
// before stays, in other rules as in this one.
func TestAFloodOfNamesDoesNotDisplaceWhoWasListed(t *testing.T) {
	b := newBench(t, nil, login(guard.Rule{Name: "account", By: guard.ByAccount, Limits: window(1, time.Hour)}), another("signup"))
	b.mustBlock(t, ofAccount("eve"), time.Hour)
	b.fail(t, 1, by("bob", here))
	b.names(t, "blocked eve", "login/account bob")
	b.advance(time.Second)
	for i := range 20_000 {
		b.fail(t, 1, by(fmt.Sprint("invented ", i), netip.Addr{}))
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		refused, err := b.Refused(ctx, 10_000)
		require.NoError(c, err)
		require.LessOrEqual(c, len(refused), 1+limiter.MaxNotes)
		require.Greater(c, len(refused), limiter.MaxNotes/2)
		var names []string
		for _, r := range refused {
			names = append(names, r.Name)
		}
		require.Contains(c, names, "bob")
		require.Contains(c, names, "eve")
	}, 10*time.Second, 10*time.Millisecond)
}

func TestWithoutAnIndexThereIsNoListing(t *testing.T) {
	b := newBench(t, func(c *guard.Config) { c.Store = brokenStore{errDown} }, login(accountRule()))
	_, err := b.Refused(ctx, 10)
	require.ErrorIs(t, err, guard.ErrNoIndex)
	_, err = new(guard.Guard).Refused(ctx, 10)
	require.ErrorIs(t, err, guard.ErrNoPolicy)
}

// mute is a store that counts and keeps no notes.
type mute struct{ *memstore.Store }

func (mute) Note(context.Context, []limiter.Note) error              { return errDown }
func (mute) Strike(context.Context, string, []string) error          { return errDown }
func (mute) Noted(context.Context, []string) ([]limiter.Note, error) { return nil, errDown }

// An index that fails is no outage: it is told apart, and limits, blocks and unlocks
// go on.
func TestAnIndexThatFailsConcernsNoLimit(t *testing.T) {
	b := newBench(t, func(c *guard.Config) { c.Store = mute{memstore.New(memstore.Config{Now: c.Now})} }, login(accountRule()))
	b.fail(t, 5, by("bob", here))
	b.requireDenied(t, 15*time.Minute, by("bob", here))
	require.Eventually(t, func() bool { return b.events.count(guard.Unnoted) == 1 }, 10*time.Second, time.Millisecond)
	b.mustBlock(t, ofAccount("eve"), time.Hour)
	b.requireDenied(t, time.Hour, by("eve", here))
	require.NoError(t, b.Unlock(ctx, "bob"))
	require.NoError(t, b.Unblock(ctx, ofAccount("eve")))
	b.requireAdmitted(t, by("bob", here))
	require.Equal(t, 4, b.events.count(guard.Unnoted))
	require.Zero(t, b.events.count(guard.Broken))
	_, err := b.Refused(ctx, 10)
	require.ErrorIs(t, err, guard.ErrUnavailable)
}
