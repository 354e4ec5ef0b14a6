package memcachestore_test

import (
	"bufio"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/memcachestore"
)

var (
	five = limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}
	many = limiter.SlidingWindowCounter{Limit: 1_000_000, Window: time.Hour}
)

func one(key string, limit limiter.Limit) limiter.Charge {
	return limiter.Charge{Key: key, Limit: limit, Ask: limiter.Ask{Cost: 1}}
}

// fives is a charge of five per 15 minutes for each key.
func fives(keys ...string) []limiter.Charge {
	var charges []limiter.Charge
	for _, k := range keys {
		charges = append(charges, one(k, five))
	}
	return charges
}

func take(t testing.TB, s limiter.Store, charges ...limiter.Charge) []limiter.Charge {
	t.Helper()
	ok, err := s.Take(ctx, charges)
	require.NoError(t, err)
	require.True(t, ok)
	return charges
}

func remaining(t testing.TB, s limiter.Store, key string, limit limiter.Limit) int64 {
	t.Helper()
	look := []limiter.Charge{one(key, limit)}
	require.NoError(t, s.Peek(ctx, look))
	return look[0].Decision.Remaining
}

// life is the seconds that a key has left, as the server says: -1 for ever, 0 if
// there is none.
func life(t testing.TB, addr, key string) int {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "mg %s t\r\n", key)
	require.NoError(t, err)
	answer, err := bufio.NewReader(conn).ReadString('\n')
	require.NoError(t, err)
	seconds, ok := strings.CutPrefix(strings.TrimSpace(answer), "HD t")
	if !ok {
		require.Equal(t, "EN\r\n", answer)
		return 0
	}
	n, err := strconv.Atoi(seconds)
	require.NoError(t, err)
	return n
}

// TM-05, TM-12: a key lives as long as its law needs it and not much longer, also
// beyond the 30 days from which on Memcached takes seconds for a date.
func TestKeysLiveAsLongAsTheLawNeedsThem(t *testing.T) {
	addr := testserver.Memcached(t)
	s := newStore(t, memcachestore.Config{Addrs: []string{addr}})
	const day = 24 * time.Hour
	for _, window := range []time.Duration{time.Second, time.Minute, 15 * time.Minute, day, 30*day - time.Second, 30 * day, 31 * day} {
		for _, limit := range []limiter.Limit{
			limiter.SlidingWindow{Limit: 5, Window: window},
			limiter.FixedWindow{Limit: 5, Window: window},
			limiter.TokenBucket{Capacity: 5, Refill: 5, Per: window},
			limiter.SlidingWindowCounter{Limit: 5, Window: min(window, limiter.MaxWindow/2)},
		} {
			key := fmt.Sprintf("%s-%v", limit.Law(), window)
			reset := take(t, s, one(key, limit))[0].Decision.ResetAfter.Seconds()
			left := float64(life(t, addr, key))
			require.Greater(t, left, reset-5, key)
			slack := 4.0
			if reset > (30*day - 5*time.Second).Seconds() {
				slack += time.Hour.Seconds() // for calendars that differ
			}
			require.LessOrEqual(t, left, reset+slack, key)
		}
	}
	month := limiter.SlidingWindow{Limit: 5, Window: 31 * day}
	for range 5 {
		take(t, s, one("month", month))
	}
	ok, err := s.Take(ctx, []limiter.Charge{one("month", month)})
	require.NoError(t, err)
	require.False(t, ok)
}

// Memcached's seconds begin and end with its own: a key with one second may be gone
// at once.
func TestAKeyOfASecondLivesThatLong(t *testing.T) {
	s := newStore(t, memcachestore.Config{Addrs: []string{testserver.Memcached(t)}})
	second := limiter.SlidingWindow{Limit: 1, Window: time.Second}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			time.Sleep(time.Duration(i) * 125 * time.Millisecond)
			c := []limiter.Charge{one(fmt.Sprint("k", i), second)}
			if ok, err := s.Take(ctx, c); err != nil || !ok {
				t.Errorf("the first: %v, %v", ok, err)
				return
			}
			first := c[0].Decision.At
			for ok := false; !ok; time.Sleep(5 * time.Millisecond) {
				var err error
				if ok, err = s.Take(ctx, c); err != nil {
					t.Error(err)
					return
				}
			}
			if after := c[0].Decision.At - first; after < second.Window.Microseconds() {
				t.Errorf("admitted again after %d µs", after)
			}
		})
	}
	wg.Wait()
}

// ME-01: what nobody touches any more goes by itself.
func TestNothingIsLeftBehind(t *testing.T) {
	addr := testserver.Memcached(t)
	s := newStore(t, memcachestore.Config{Addrs: []string{addr}})
	for i := range 20 {
		take(t, s, one(fmt.Sprint(i), limiter.SlidingWindow{Limit: 5, Window: 100 * time.Millisecond}))
	}
	require.Eventually(t, func() bool {
		for i := range 20 {
			if life(t, addr, fmt.Sprint(i)) != 0 {
				return false
			}
		}
		return true
	}, 20*time.Second, 100*time.Millisecond)
}

// TM-01, ME-05: nothing that is written lives for ever, and whatever is written
// sets a lost expiry right.
func TestEveryWriteHasAnExpiry(t *testing.T) {
	addr := testserver.Memcached(t)
	s := newStore(t, memcachestore.Config{Addrs: []string{addr}})
	raw := memcache.New(addr)
	first := take(t, s, fives("k")...)
	for _, write := range []struct {
		name string
		do   func()
	}{
		{"a charge", func() { take(t, s, fives("k")...) }},
		{"a refund", func() { require.NoError(t, s.Refund(ctx, first)) }}, // of one of two: else nothing is left
	} {
		require.NoError(t, raw.Touch("k", 0))
		require.Equal(t, -1, life(t, addr, "k"))
		write.do()
		require.InDelta(t, 15*60, life(t, addr, "k"), 60, write.name)
	}
}

// In a rolling deploy the shorter window does not take away what the longer needs.
func TestALifeIsNeverShortened(t *testing.T) {
	addr := testserver.Memcached(t)
	s := newStore(t, memcachestore.Config{Addrs: []string{addr}})
	for _, window := range []time.Duration{time.Hour, time.Minute} {
		receipt := take(t, s, one("k", limiter.SlidingWindow{Limit: 5, Window: window}))
		require.Greater(t, life(t, addr, "k"), 59*60)
		take(t, s, one("k", limiter.SlidingWindow{Limit: 5, Window: window}))
		require.NoError(t, s.Refund(ctx, receipt))
		require.Greater(t, life(t, addr, "k"), 59*60)
	}
}

// A clock of tests says nothing of how long a key lives by the server's.
func TestAnInjectedClockDoesNotBreakExpiries(t *testing.T) {
	addr := testserver.Memcached(t)
	for _, year := range []int{1971, 2026, 2200} {
		key := fmt.Sprint(year)
		s := newStore(t, memcachestore.Config{Addrs: []string{addr}, Now: func() time.Time { return time.Date(year, 3, 1, 12, 0, 0, 0, time.UTC) }})
		take(t, s, one(key, limiter.SlidingWindow{Limit: 5, Window: time.Second}))
		require.InDelta(t, time.Hour.Seconds(), life(t, addr, key), 10)
	}
}

// What a refund leaves empty is gone at once.
func TestARefundOfEverythingLeavesNoKey(t *testing.T) {
	addr := testserver.Memcached(t)
	s := newStore(t, memcachestore.Config{Addrs: []string{addr}})
	first, second := take(t, s, fives("k")...), take(t, s, fives("k")...)
	require.NoError(t, s.Refund(ctx, first))
	require.NotZero(t, life(t, addr, "k"))
	require.NoError(t, s.Refund(ctx, second))
	require.Zero(t, life(t, addr, "k"))
	take(t, s, fives("k")...)
	require.EqualValues(t, 4, remaining(t, s, "k", five))
}

// A value that is not ours is that key's error, and goes away within the hour.
func TestAnAlienValueIsThatKeysError(t *testing.T) {
	addr := testserver.Memcached(t)
	s := newStore(t, memcachestore.Config{Addrs: []string{addr}})
	raw := memcache.New(addr)
	require.NoError(t, raw.Set(&memcache.Item{Key: "counter", Value: []byte("17")}))
	require.NoError(t, raw.Set(&memcache.Item{Key: "long", Value: make([]byte, 1000)}))
	take(t, s, one("law", limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Hour})) // 16 bytes
	for key, limit := range map[string]limiter.Limit{"counter": five, "long": five, "law": limiter.FixedWindow{Limit: 5, Window: time.Hour}} {
		charges := []limiter.Charge{one("good", five), one(key, limit)}
		look := func() error { return s.Peek(ctx, charges) }
		take := func() error { _, err := s.Take(ctx, charges); return err }
		refund := func() error { charges[1].Taken = true; return s.Refund(ctx, charges) }
		before, err := raw.Get(key)
		require.NoError(t, err)
		for i, call := range []func() error{look, refund, take, look, take, refund} {
			err := call()
			require.ErrorIs(t, err, limiter.ErrState, "%s, call %d", key, i)
			var which *limiter.ChargeError
			require.ErrorAs(t, err, &which)
			require.Equal(t, 1, which.Index)
			if after, err := raw.Get(key); i < 2 {
				require.NoError(t, err)
				require.Equal(t, before, after, "%s, call %d", key, i)
			}
		}
		require.Greater(t, life(t, addr, key), 0, key)
		if key != "law" { // which has the life that it was written with
			require.LessOrEqual(t, life(t, addr, key), 3600, key)
		}
		require.EqualValues(t, 5, remaining(t, s, "good", five), "nothing was charged beside it")
		require.NoError(t, s.Forget(ctx, []string{key}))
		require.EqualValues(t, 5, remaining(t, s, key, limit))
	}
}

// ME-06: what stands for a key that Memcached would not take is no other key's name.
func TestAHashedKeyIsNoOtherKeys(t *testing.T) {
	addr := testserver.Memcached(t)
	s := newStore(t, memcachestore.Config{Addrs: []string{addr}})
	var stored atomic.Pointer[string]
	proxy := testserver.Proxy(t, addr, func(request string) testserver.Fate {
		if words := strings.Fields(request); words[0] == "add" {
			stored.Store(&words[1])
		}
		return testserver.Pass
	})
	watched := newStore(t, memcachestore.Config{Addrs: []string{proxy}})
	for _, key := range []string{"", "a b", strings.Repeat("x", 251)} {
		take(t, watched, fives(key)...)
		name := *stored.Load()
		require.LessOrEqual(t, len(name), 250)
		require.EqualValues(t, 5, remaining(t, s, name, five), "%.10q is stored as %q", key, name)
	}
	longest := strings.Repeat("x", 250)
	take(t, watched, fives(longest)...)
	require.Equal(t, longest, *stored.Load())
}

// Of two processes the clock of one is a little behind. It moves none of the other's
// instants, by which a refund finds its own.
func TestClocksALittleApartLoseNoRefund(t *testing.T) {
	addr := testserver.Memcached(t)
	behind := newStore(t, memcachestore.Config{Addrs: []string{addr}, Now: time.Now})
	ahead := newStore(t, memcachestore.Config{Addrs: []string{addr}, Now: func() time.Time { return time.Now().Add(5 * time.Millisecond) }})
	for range 20 {
		first := take(t, ahead, fives("k")...)
		second := take(t, behind, fives("k")...)
		require.GreaterOrEqual(t, second[0].Decision.At, first[0].Decision.At)
		require.NoError(t, ahead.Refund(ctx, first))
		require.NoError(t, behind.Refund(ctx, second))
		require.EqualValues(t, 5, remaining(t, behind, "k", five))
	}
}

// Whoever is beaten to a key again and again is denied, and told to come again.
func TestContentionIsADenial(t *testing.T) {
	addr := testserver.Memcached(t)
	other := newStore(t, memcachestore.Config{Addrs: []string{addr}})
	var tries atomic.Int64
	proxy := testserver.Proxy(t, addr, func(request string) testserver.Fate {
		if strings.HasPrefix(request, "cas busy ") || strings.HasPrefix(request, "add busy ") {
			tries.Add(1)
			if _, err := other.Take(ctx, []limiter.Charge{one("busy", many)}); err != nil {
				return testserver.Lose
			}
		}
		return testserver.Pass
	})
	s := newStore(t, memcachestore.Config{Addrs: []string{proxy}})
	for name, charges := range map[string][]limiter.Charge{
		"a vote":   {one("first", five), one("busy", many), one("last", five)},
		"advisory": {one("first", five), one("busy", many)},
	} {
		tries.Store(0)
		votes := len(charges) == 3
		if !votes {
			charges[0].Advisory = 1
			charges[1].Advisory = 1
		}
		ok, err := s.Take(ctx, charges)
		require.NoError(t, err, name)
		require.Equal(t, !votes, ok, name)
		require.Greater(t, tries.Load(), int64(1), name)
		require.LessOrEqual(t, tries.Load(), int64(16), name)
		for _, c := range charges {
			require.False(t, c.Taken, name)
			require.Equal(t, c.Key != "busy", c.Decision.Allowed, name)
			if c.Key == "busy" {
				require.Equal(t, time.Second, c.Decision.RetryAfter, name)
				require.Positive(t, c.Decision.Remaining, name)
				require.GreaterOrEqual(t, c.Decision.ResetAfter, time.Second, name)
				continue
			}
			require.EqualValues(t, 5, c.Decision.Remaining, name)
			require.EqualValues(t, 5, remaining(t, other, c.Key, five), name)
		}
	}
}

// Callers of one process take turns at a key, so that none is denied for the others.
func TestCallersOfOneProcessDoNotContend(t *testing.T) {
	s := newStore(t, memcachestore.Config{Addrs: []string{testserver.Memcached(t)}})
	var wg sync.WaitGroup
	for range 200 {
		wg.Go(func() {
			if ok, err := s.Take(ctx, []limiter.Charge{one("k", many)}); err != nil || !ok {
				t.Errorf("%v, %v", ok, err)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, many.Limit-200, remaining(t, s, "k", many))
}

// RC-05: of many writers on several connections none loses a count, or finds it lost.
func TestNoCountIsLost(t *testing.T) {
	addr := testserver.Memcached(t)
	var stores []*memcachestore.Store
	for range 4 {
		stores = append(stores, newStore(t, memcachestore.Config{Addrs: []string{addr}}))
	}
	var admitted, denied atomic.Int64
	var wg sync.WaitGroup
	for i := range 80 {
		wg.Go(func() {
			for range 10 {
				switch ok, err := stores[i%4].Take(ctx, []limiter.Charge{one("k", many)}); {
				case err != nil:
					t.Error(err)
				case ok:
					admitted.Add(1)
				default:
					denied.Add(1)
				}
			}
		})
	}
	wg.Wait()
	require.Equal(t, many.Limit-admitted.Load(), remaining(t, stores[0], "k", many))
	require.Positive(t, admitted.Load())
	t.Logf("%d admitted, %d denied for contention", admitted.Load(), denied.Load())
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	for want, c := range map[string]memcachestore.Config{
		"memcachestore: Config.Addrs is empty":                                                                  {},
		`memcachestore: Config.Addrs[1] is "b", want host:port or the absolute path of a socket`:                {Addrs: []string{"a:1", "b"}},
		`memcachestore: Config.Addrs[0] is "http://localhost", want host:port or the absolute path of a socket`: {Addrs: []string{"http://localhost"}},
		"memcachestore: Config.Timeout is -1ns, want at least 0":                                                {Addrs: []string{"a:1"}, Timeout: -1},
	} {
		_, err := memcachestore.New(c)
		require.EqualError(t, err, want)
	}
}
