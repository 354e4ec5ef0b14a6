package password_test

import (
	"context"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/authdemo/password"
)

var (
	flood  = at("203.0.113.1")
	owner  = at("198.51.100.7")
	second = at("198.51.100.8")
)

func at(addr string) password.Client { return password.Client{Addr: netip.MustParseAddr(addr)} }

// known is the same address with a device of the account.
func known(c password.Client) password.Client { c.Trusted = true; return c }

func newGate(t *testing.T, slots int) *password.Gate {
	t.Helper()
	g, err := password.NewGate(password.GateConfig{Slots: slots, Waiting: 64, PerAddress: 32, MaxWait: 2 * time.Second})
	require.NoError(t, err)
	return g
}

func enter(t *testing.T, g *password.Gate, addr password.Client) (leave func()) {
	t.Helper()
	leave, err := g.Enter(t.Context(), addr)
	require.NoError(t, err)
	return leave
}

// order sends one waiter after the other to a full gate, and tells in which
// order they got in.
func order(t *testing.T, g *password.Gate, addrs ...password.Client) []password.Client {
	t.Helper()
	var mu sync.Mutex
	var served []password.Client
	leave := enter(t, g, at("192.0.2.1"))
	var wg sync.WaitGroup
	for _, addr := range addrs {
		wg.Go(func() {
			done, err := g.Enter(t.Context(), addr)
			if !assert.NoError(t, err) {
				return
			}
			mu.Lock()
			served = append(served, addr)
			mu.Unlock()
			done()
		})
		synctest.Wait()
	}
	leave()
	wg.Wait()
	return served
}

func TestAddressesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		got := order(t, newGate(t, 1), flood, flood, flood, flood, owner, second, owner)
		assert.Equal(t, []password.Client{flood, owner, second, flood, owner, flood, flood}, got)
	})
}

func TestOneSubnetIsOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, other := at("2001:db8::1"), at("2001:db8:0:1::2"), at("2001:db8:1::1")
		got := order(t, newGate(t, 1), a, b, other)
		assert.Equal(t, []password.Client{a, other, b}, got)
	})
}

func TestNeverMoreAtOnceThanSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, 2)
		var inside, most atomic.Int64
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				leave, err := g.Enter(t.Context(), password.Client{Addr: netip.AddrFrom4([4]byte{192, 0, 2, byte(i % 5)}), Trusted: i%2 == 0})
				if !assert.NoError(t, err) {
					return
				}
				defer leave()
				n := inside.Add(1)
				for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
				}
				time.Sleep(20 * time.Millisecond)
				inside.Add(-1)
			})
		}
		wg.Wait()
		assert.EqualValues(t, 2, most.Load())
		assert.Zero(t, g.Len())
	})
}

func TestPlacesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, 1)
		defer enter(t, g, owner)()
		results := make(chan error, 100)
		come := func(addr password.Client, n int) {
			for range n {
				go func() {
					_, err := g.Enter(t.Context(), addr)
					results <- err
				}()
				synctest.Wait()
			}
		}
		come(flood, 33)
		require.Len(t, results, 1, "one address has 32 places")
		require.ErrorIs(t, <-results, password.ErrFull)
		come(owner, 32)
		assert.Equal(t, 64, g.Len(), "and leaves 32 to others")
		come(second, 1)
		require.Len(t, results, 1, "64 may wait in all")
		require.ErrorIs(t, <-results, password.ErrFull)

		time.Sleep(2 * time.Second)
		synctest.Wait()
		require.Len(t, results, 64, "nobody waits longer than two seconds")
		for range 64 {
			require.ErrorIs(t, <-results, password.ErrFull)
		}
		assert.Zero(t, g.Len())
	})
}

// Whoever is known goes first; one in four is a stranger as long as strangers wait.
func TestTrustedClientsGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		home, office := known(owner), known(second)
		got := order(t, newGate(t, 1), flood, flood, flood, home, home, office, home, home)
		assert.Equal(t, []password.Client{home, office, home, flood, home, home, flood, flood}, got)

		got = order(t, newGate(t, 1), flood, owner, home)
		assert.Equal(t, []password.Client{home, flood, owner}, got, "at one address, too")
	})
}

// LK-01: strangers who fill all places, even from the same address, keep no known
// client outside; strangers do not displace one.
func TestATrustedClientTakesAStrangersPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, 1)
		leave := enter(t, g, at("192.0.2.1"))
		served := map[password.Client]int{}
		displaced := map[password.Client]int{}
		var mu sync.Mutex
		var wg sync.WaitGroup
		wait := func(n int, c password.Client) {
			for range n {
				wg.Go(func() {
					done, err := g.Enter(t.Context(), c)
					mu.Lock()
					defer mu.Unlock()
					if err != nil {
						assert.ErrorIs(t, err, password.ErrFull)
						displaced[c]++
						return
					}
					served[c]++
					done()
				})
				synctest.Wait()
			}
		}
		wait(32, flood)
		wait(4, known(flood))
		assert.Equal(t, map[password.Client]int{flood: 4}, displaced, "at most 32 places to one address")
		wait(32, second)
		assert.Equal(t, 64, g.Len())
		wait(1, known(owner))
		assert.Equal(t, map[password.Client]int{flood: 4, second: 1}, displaced, "the longest queue of strangers")
		wait(28, known(flood))
		wait(1, known(flood))
		assert.Equal(t, map[password.Client]int{flood: 32, known(flood): 1, second: 1}, displaced, "32 known clients are enough")
		wait(31, known(second))
		assert.Equal(t, 64, g.Len())
		assert.Equal(t, 32, displaced[second])
		wait(1, owner)
		assert.Equal(t, 1, displaced[owner], "a stranger takes no place of a known client")
		wait(1, known(at("198.51.100.9")))
		assert.Equal(t, 2, displaced[known(flood)], "among themselves the longest queue gives way")
		leave()
		wg.Wait()
		assert.Zero(t, g.Len())
		assert.Equal(t, 31, served[known(flood)])
		assert.Equal(t, 31, served[known(second)])
		enter(t, g, owner)()
	})
}

// A few addresses that hold all places cannot keep a newcomer outside.
func TestANewcomerTakesThePlaceOfTheLongestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, 1)
		leave := enter(t, g, at("192.0.2.1"))
		var displaced, served atomic.Int64
		var wg sync.WaitGroup
		wait := func(addr password.Client) {
			wg.Go(func() {
				done, err := g.Enter(t.Context(), addr)
				if err != nil {
					assert.ErrorIs(t, err, password.ErrFull)
					displaced.Add(1)
					return
				}
				served.Add(1)
				done()
			})
			synctest.Wait()
		}
		for range 32 {
			wait(flood)
			wait(second)
		}
		assert.Equal(t, 64, g.Len())
		wait(owner)
		assert.EqualValues(t, 1, displaced.Load())
		assert.Equal(t, 64, g.Len())
		wait(flood) // its queue is among the longest itself
		assert.EqualValues(t, 2, displaced.Load())
		leave()
		wg.Wait()
		assert.EqualValues(t, 64, served.Load())
		assert.Zero(t, g.Len())
		enter(t, g, owner)()
	})
}

func TestWhoeverLeavesTheQueueFreesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, 1)
		leave := enter(t, g, owner)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() { _, err := g.Enter(ctx, flood); gone <- err }()
		synctest.Wait()
		cancel()
		require.ErrorIs(t, <-gone, context.Canceled)
		assert.Zero(t, g.Len())

		leave()
		enter(t, g, second)() // the slot was not lost
	})
}

func TestGivingUpAtTheMomentOfBeingServedLosesNoSlot(t *testing.T) {
	for range 500 {
		g := newGate(t, 1)
		leave := enter(t, g, owner)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			if done, err := g.Enter(ctx, flood); err == nil {
				done()
			} else {
				assert.ErrorIs(t, err, context.Canceled)
			}
		})
		for g.Len() == 0 {
			runtime.Gosched()
		}
		cancel() // wakes the waiter, who mostly finds itself served already
		leave()
		wg.Wait()
		enter(t, g, second)()
	}
}

func TestWhoeverIsGoneDoesNotEnter(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := newGate(t, 1).Enter(ctx, owner)
	require.ErrorIs(t, err, context.Canceled)
}

func TestGateConfigNamesTheField(t *testing.T) {
	for field, cfg := range map[string]password.GateConfig{
		"Slots":      {Slots: 0},
		"Waiting":    {Slots: 1, Waiting: -1},
		"PerAddress": {Slots: 1, PerAddress: -1},
		"MaxWait":    {Slots: 1, MaxWait: -1},
	} {
		_, err := password.NewGate(cfg)
		assert.ErrorContains(t, err, field)
	}
}
