package authguard_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/policies"
)

// paid is a challenge for which somebody was paid: whoever wants to solves it.
type paid struct{ solved atomic.Int64 }

func (*paid) Pose(token string) guard.Puzzle { return guard.Puzzle{Kind: "paid", Token: token} }

func (p *paid) Verify(_ context.Context, _, solution string, _ guard.Attempt) (bool, error) {
	p.solved.Add(1)
	return solution == "paid", nil
}

// town is a guard with the presets and a clock of its own, with people who have
// accounts and, on their devices, cookies.
type town struct {
	*testing.T
	*guard.Guard
	nanos          atomic.Int64
	names, cookies []string
}

func (w *town) now() time.Time          { return time.Unix(0, w.nanos.Load()) }
func (w *town) advance(d time.Duration) { w.nanos.Add(int64(d)) }

// inTowns tells a story over memory and Redis, where challenges can be asked for and
// where they cannot.
func inTowns(t *testing.T, people int, story func(w *town, wired bool)) {
	for _, wired := range []bool{false, true} {
		for name, open := range stores {
			if name == "memcached" {
				continue // the same laws in Go as in memory
			}
			t.Run(fmt.Sprintf("%s/wired=%v", name, wired), func(t *testing.T) {
				w := &town{T: t}
				w.nanos.Store(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).UnixNano())
				known := map[string]guard.Account{}
				for i := range people {
					w.names = append(w.names, fmt.Sprintf("person%d@example.com", i))
					known[w.names[i]] = guard.Account{ID: fmt.Sprint(i), Generation: 1}
				}
				c := guard.Config{
					Store: open(t, w.now), Secret: bytes.Repeat([]byte("secret"), 6), Policies: policies.Default(), Now: w.now,
					Resolve: func(_ context.Context, name string) (guard.Account, error) { return known[name], nil },
				}
				if wired {
					c.Challenger = &paid{}
				}
				var err error
				w.Guard, err = guard.New(c)
				require.NoError(t, err)
				for _, n := range w.names {
					cookie, _, err := w.TrustDevice(known[n], "")
					require.NoError(t, err)
					w.cookies = append(w.cookies, cookie)
				}
				story(w, wired)
			})
		}
	}
}

// try attempts a login and settles it; the refusal if there is one.
func (w *town) try(a guard.Attempt, right bool) *guard.Denied {
	w.Helper()
	a.Action = "login"
	_, err := w.Do(w.Context(), a, func(context.Context, *guard.Pass) (bool, error) { return right, nil })
	var denied *guard.Denied
	if !errors.As(err, &denied) {
		require.NoError(w, err)
	}
	return denied
}

// MC-06: one address tries one password on a thousand accounts. Within the hour it
// gets to ten of them, whether others are asked for a challenge that it does not
// solve, or there is none to ask for.
func TestOnePasswordOnAThousandAccounts(t *testing.T) {
	addr := netip.MustParseAddr("203.0.113.7")
	inTowns(t, 1000, func(w *town, wired bool) {
		touched := 0
		for _, name := range w.names {
			w.advance(time.Hour / 1000)
			denied := w.try(guard.Attempt{Account: name, IP: addr}, false)
			if denied == nil {
				touched++
				continue
			}
			require.Equal(w, []string{"spraying"}, denied.Rules)
			require.Equal(w, wired, denied.Challenge != nil)
			require.Positive(w, denied.RetryAfter)
		}
		require.Equal(w, 10, touched)
	})
}

// The same, with somebody who pays for solutions: a hundred failures an hour are the
// address's, however many challenges it solves, and five at one account; so it gets
// to a hundred accounts. Whoever has a thousand addresses gets to all of them.
func TestOnePasswordOnAThousandAccountsByAPaidSolver(t *testing.T) {
	addr := netip.MustParseAddr("203.0.113.7")
	inTowns(t, 1000, func(w *town, wired bool) {
		if !wired {
			return
		}
		solving := func(name string, from netip.Addr) *guard.Denied {
			a := guard.Attempt{Account: name, IP: from}
			denied := w.try(a, false)
			if denied != nil && denied.Challenge != nil {
				a.Challenge = denied.Challenge.Token + ".paid"
				again := w.try(a, false)
				require.NotNil(w, w.try(a, false), "each answer is good once")
				return again
			}
			return denied
		}
		touched := 0
		var last *guard.Denied
		for _, name := range w.names {
			if last = solving(name, addr); last == nil {
				touched++
			}
		}
		require.Equal(w, 100, touched)
		require.Contains(w, last.Rules, "ip")
		require.Nil(w, last.Challenge, "nothing to solve helps any more")

		guesses, everywhere := 0, netip.MustParseAddr("198.18.0.0")
		for range 100 { // one account, from as many addresses
			if everywhere = everywhere.Next(); solving(w.names[999], everywhere) == nil {
				guesses++
			}
		}
		require.Equal(w, 5, guesses)
		reached := 0
		for _, name := range w.names[100:900] {
			if everywhere = everywhere.Next(); solving(name, everywhere) == nil {
				reached++
			}
		}
		require.Equal(w, 800, reached)
		for range 200 { // by now more than a thousand have failed, and strangers are asked
			everywhere = everywhere.Next()
			solving(fmt.Sprintf("nobody%v@example.com", everywhere), everywhere)
		}
		stranger := guard.Attempt{Account: w.names[950], IP: netip.MustParseAddr("192.0.2.9")}
		denied := w.try(stranger, true)
		require.Equal(w, []string{"global"}, denied.Rules)
		stranger.Challenge = denied.Challenge.Token + ".paid"
		require.Nil(w, w.try(stranger, true), "an owner on a new device solves it")
		require.Nil(w, w.try(guard.Attempt{Account: w.names[951], IP: stranger.IP, Device: w.cookies[951]}, true), "and on a known one is not asked")
	})
}

// An office of 200 people behind one address, on devices that they have used before,
// logs in within a minute. One in ten mistypes twice before it is right, and all the
// while somebody behind the same address guesses without pause. Nobody is refused.
func TestAnOfficeLogsInWithinAMinuteBesideAnAttacker(t *testing.T) {
	addr := netip.MustParseAddr("203.0.113.7")
	inTowns(t, 200, func(w *town, _ bool) {
		guessed, refused := 0, 0
		attack := func(i int) {
			for n := range 5 {
				target := fmt.Sprintf("person%d@example.com", (i*5+n)%400) // half of them nobody's
				if w.try(guard.Attempt{Account: target, IP: addr}, false) == nil {
					guessed++
				} else {
					refused++
				}
			}
		}
		for i, name := range w.names {
			w.advance(time.Minute / 200)
			attack(i)
			a := guard.Attempt{Account: name, IP: addr, Device: w.cookies[i]}
			if i%10 == 0 {
				require.Nil(w, w.try(a, false), name)
				attack(i)
				require.Nil(w, w.try(a, false), name)
				attack(i)
			}
			require.Nil(w, w.try(a, true), name)
		}
		require.Positive(w, refused, "the attacker was")
		require.LessOrEqual(w, guessed, 100)
	})
}

// The same office on 200 new devices within ten minutes, with nobody who attacks:
// nobody is refused, nor asked for anything.
func TestAnOfficeOnNewDevicesLogsInWithinTenMinutes(t *testing.T) {
	addr := netip.MustParseAddr("203.0.113.7")
	inTowns(t, 200, func(w *town, _ bool) {
		for i, name := range w.names {
			w.advance(10 * time.Minute / 200)
			a := guard.Attempt{Account: name, IP: addr}
			if i%10 == 0 {
				require.Nil(w, w.try(a, false), name)
				w.advance(time.Second)
				require.Nil(w, w.try(a, false), name)
				w.advance(time.Second)
			}
			require.Nil(w, w.try(a, true), name)
		}
	})
}
