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
	flood  = netip.MustParseAddr("203.0.113.1")
	owner  = netip.MustParseAddr("198.51.100.7")
	second = netip.MustParseAddr("198.51.100.8")
)

func newGate(t *testing.T, slots int) *password.Gate {
	t.Helper()
	g, err := password.NewGate(password.GateConfig{Slots: slots, Waiting: 64, PerAddress: 32, MaxWait: 2 * time.Second})
	require.NoError(t, err)
	return g
}

func enter(t *testing.T, g *password.Gate, addr netip.Addr) (leave func()) {
	t.Helper()
	leave, err := g.Enter(t.Context(), addr)
	require.NoError(t, err)
	return leave
}

// order sends one waiter after the other to a full gate, and tells in which
// order they got in.
func order(t *testing.T, g *password.Gate, addrs ...netip.Addr) []netip.Addr {
	t.Helper()
	var mu sync.Mutex
	var served []netip.Addr
	leave := enter(t, g, netip.MustParseAddr("192.0.2.1"))
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
		assert.Equal(t, []netip.Addr{flood, owner, second, flood, owner, flood, flood}, got)
	})
}

func TestOneSubnetIsOneClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b, other := netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("2001:db8:0:1::2"), netip.MustParseAddr("2001:db8:1::1")
		got := order(t, newGate(t, 1), a, b, other)
		assert.Equal(t, []netip.Addr{a, other, b}, got)
	})
}

func TestNeverMoreAtOnceThanSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, 2)
		var inside, most atomic.Int64
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() {
				leave, err := g.Enter(t.Context(), netip.AddrFrom4([4]byte{192, 0, 2, byte(i % 5)}))
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
		come := func(addr netip.Addr, n int) {
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

// A few addresses that hold all places cannot keep a newcomer outside.
func TestANewcomerTakesThePlaceOfTheLongestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate(t, 1)
		leave := enter(t, g, netip.MustParseAddr("192.0.2.1"))
		var displaced, served atomic.Int64
		var wg sync.WaitGroup
		wait := func(addr netip.Addr) {
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
