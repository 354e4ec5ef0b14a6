package memcachestore_test

import (
	"context"
	"errors"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/memcachestore"
)

// behind is a store whose requests meet a fate, and one on the same server that
// sees what came of it. fate is asked about the requests that write.
func behind(t *testing.T, timeout time.Duration, fate func(verb, key string) testserver.Fate) (s, direct *memcachestore.Store) {
	t.Helper()
	addr := testserver.Memcached(t)
	proxy := testserver.Proxy(t, addr, func(request string) testserver.Fate {
		words := strings.Fields(request)
		if words[0] == "cas" || words[0] == "add" {
			return fate(words[0], words[1])
		}
		return testserver.Pass
	})
	return newStore(t, memcachestore.Config{Addrs: []string{proxy}, Timeout: timeout}), newStore(t, memcachestore.Config{Addrs: []string{addr}})
}

// at counts the writes of a key, and gives each a fate.
func at(target string, fate testserver.Fate, n *atomic.Int64) func(string, string) testserver.Fate {
	return func(_, key string) testserver.Fate {
		if key != target {
			return testserver.Pass
		}
		n.Add(1)
		return fate
	}
}

// A charge whose answer is lost stands, once; one that is lost itself does not.
// What else was charged is given back.
func TestAChargeOfUnknownFateIsNeverSentAgain(t *testing.T) {
	for name, c := range map[string]struct {
		fate  testserver.Fate
		fresh bool // the key is new: add and not cas
		left  int64
	}{
		"stored but reported failed, cas": {testserver.Cut, false, 3},
		"stored but reported failed, add": {testserver.Cut, true, 4},
		"failed and not stored, cas":      {testserver.Lose, false, 4},
		"failed and not stored, add":      {testserver.Lose, true, 5},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			s, direct := behind(t, 0, at("bad", c.fate, &sent))
			if !c.fresh {
				take(t, direct, fives("first", "bad", "last")...)
			}
			before := remaining(t, direct, "first", five)
			charges := fives("first", "bad", "last")
			ok, err := s.Take(ctx, charges)
			require.Error(t, err)
			require.False(t, ok)
			require.NotErrorAs(t, err, new(*limiter.ChargeError))
			for _, c := range charges {
				require.False(t, c.Taken)
			}
			require.NoError(t, s.Refund(ctx, charges), "there is nothing to refund")
			require.EqualValues(t, 1, sent.Load())
			require.Equal(t, c.left, remaining(t, direct, "bad", five))
			require.Equal(t, before, remaining(t, direct, "first", five))
			require.Equal(t, before, remaining(t, direct, "last", five))
		})
	}
}

// A refund whose answer is lost is made, once; one that is lost itself is not, and
// its unit stays lost. The others of the batch are given back.
func TestARefundOfUnknownFateIsNeverSentAgain(t *testing.T) {
	for fate, left := range map[testserver.Fate]int64{testserver.Cut: 4, testserver.Lose: 3} {
		var sent atomic.Int64
		s, direct := behind(t, 0, at("bad", fate, &sent))
		take(t, direct, fives("first", "bad", "last")...)
		receipt := take(t, direct, fives("first", "bad", "last")...)
		require.Error(t, s.Refund(ctx, receipt))
		require.NoError(t, s.Refund(ctx, receipt), "there is nothing left to refund")
		require.EqualValues(t, 1, sent.Load())
		require.Equal(t, left, remaining(t, direct, "bad", five))
		require.EqualValues(t, 4, remaining(t, direct, "first", five))
		require.EqualValues(t, 4, remaining(t, direct, "last", five))
	}
}

// A server that stops answering in the middle of a batch holds nothing of it but
// what was under way, and the call ends in time.
func TestWhatWasChargedIsGivenBackWithinTheDeadline(t *testing.T) {
	var sent atomic.Int64
	s, direct := behind(t, 2*time.Second, at("bad", testserver.Stall, &sent))
	start := time.Now()
	_, err := s.Take(ctx, fives("a", "b", "c", "bad", "d"))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Less(t, time.Since(start), 10*time.Second)
	require.EqualValues(t, 1, sent.Load())
	for _, key := range []string{"a", "b", "c", "bad", "d"} {
		require.EqualValues(t, 5, remaining(t, direct, key, five), key)
	}
}

// A caller who goes away in the middle is charged nothing.
func TestACancelledCallGivesBack(t *testing.T) {
	gone, cancel := context.WithCancel(ctx)
	s, direct := behind(t, 0, func(_, key string) testserver.Fate {
		if key == "b" {
			cancel()
		}
		return testserver.Pass
	})
	charges := fives("a", "b", "c")
	ok, err := s.Take(gone, charges)
	require.ErrorIs(t, err, context.Canceled)
	require.False(t, ok)
	for _, key := range []string{"a", "b", "c"} {
		require.EqualValues(t, 5, remaining(t, direct, key, five), key)
	}
}

// everyCall is each method once, on keys of its own.
func everyCall(s limiter.Store, ctx context.Context) map[string]func() error {
	taken := fives("a", "b")
	taken[0].Taken, taken[1].Taken = true, true
	return map[string]func() error{
		"take":   func() error { _, err := s.Take(ctx, fives("a", "b")); return err },
		"peek":   func() error { return s.Peek(ctx, fives("a", "b")) },
		"refund": func() error { return s.Refund(ctx, taken) },
		"forget": func() error { return s.Forget(ctx, []string{"a", "b"}) },
	}
}

// A server that accepts and never answers, and one that cannot even be connected,
// cost the deadline and no more: the store's or the caller's.
func TestADeadlineCutsEveryCall(t *testing.T) {
	hole := testserver.Proxy(t, testserver.Memcached(t), func(string) testserver.Fate { return testserver.Stall })
	unreachable := func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	soon, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	for name, c := range map[string]struct {
		config memcachestore.Config
		ctx    context.Context
	}{
		"silent":                       {memcachestore.Config{Addrs: []string{hole}, Timeout: 50 * time.Millisecond}, ctx},
		"unreachable":                  {memcachestore.Config{Addrs: []string{hole}, Timeout: 50 * time.Millisecond, Dial: unreachable}, ctx},
		"silent, and a caller's own":   {memcachestore.Config{Addrs: []string{hole}, Timeout: time.Hour}, soon},
		"one of two is silent":         {memcachestore.Config{Addrs: []string{testserver.Memcached(t), hole}, Timeout: 50 * time.Millisecond}, ctx},
		"the default is not that long": {memcachestore.Config{Addrs: []string{hole}}, ctx},
		"unreachable, a caller's own":  {memcachestore.Config{Addrs: []string{hole}, Timeout: time.Hour, Dial: unreachable}, soon},
	} {
		s, err := memcachestore.New(c.config)
		require.NoError(t, err)
		for verb, call := range everyCall(s, c.ctx) {
			start := time.Now()
			require.ErrorIs(t, call(), context.DeadlineExceeded, "%s: %s", name, verb)
			require.Less(t, time.Since(start), 5*time.Second, "%s: %s", name, verb)
		}
		s.Close()
	}
}

// A crowd at a server that answers nobody leaves neither goroutines nor more than
// a few connections.
func TestABlackHolePilesNothingUp(t *testing.T) {
	var open atomic.Int64
	var tooMany atomic.Bool
	hole := testserver.Proxy(t, testserver.Memcached(t), func(string) testserver.Fate { return testserver.Stall })
	s := newStore(t, memcachestore.Config{Addrs: []string{hole}, Timeout: 200 * time.Millisecond, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		if open.Add(1) > 64 {
			tooMany.Store(true)
		}
		return &counted{Conn: conn, open: &open}, nil
	}})
	before := runtime.NumGoroutine()
	var overloaded, late atomic.Int64
	var wg sync.WaitGroup
	for range 500 {
		wg.Go(func() {
			start := time.Now()
			_, err := s.Take(ctx, fives("a", "b"))
			if !failedAsItShould(err, &overloaded) {
				t.Errorf("error: %v", err)
			}
			if time.Since(start) > 10*time.Second {
				late.Add(1)
			}
		})
	}
	wg.Wait()
	require.Zero(t, late.Load())
	require.Positive(t, overloaded.Load(), "who had no place is told that it is a crowd and no outage")
	require.False(t, tooMany.Load())
	require.Zero(t, open.Load(), "connections left")
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+5 }, 20*time.Second, 20*time.Millisecond)
}

func failedAsItShould(err error, overloaded *atomic.Int64) bool {
	switch {
	case err == nil:
		return false
	case errors.Is(err, limiter.ErrOverloaded):
		overloaded.Add(1)
		return true
	}
	return errors.Is(err, context.DeadlineExceeded)
}

type counted struct {
	net.Conn
	open *atomic.Int64
	once sync.Once
}

func (c *counted) Close() error {
	c.once.Do(func() { c.open.Add(-1) })
	return c.Conn.Close()
}

// A server that takes its time is no fault while there is enough of it, and else
// costs each key one unit at most.
func TestASlowServer(t *testing.T) {
	addr := testserver.Memcached(t)
	slow := testserver.Proxy(t, addr, func(string) testserver.Fate {
		time.Sleep(5 * time.Millisecond)
		return testserver.Pass
	})
	keys := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"}
	patient := newStore(t, memcachestore.Config{Addrs: []string{slow}})
	take(t, patient, fives(keys...)...)
	hasty := newStore(t, memcachestore.Config{Addrs: []string{slow}, Timeout: 30 * time.Millisecond})
	ok, err := hasty.Take(ctx, fives(keys...))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.False(t, ok)
	direct := newStore(t, memcachestore.Config{Addrs: []string{addr}})
	for _, key := range keys {
		require.GreaterOrEqual(t, remaining(t, direct, key, five), int64(3), key)
	}
}

// A server that is gone is an error at once; when it is back, without memory, the
// connections of before cost nobody a call.
func TestAServerThatIsKilledAndComesBack(t *testing.T) {
	server := testserver.MortalMemcached(t)
	s := newStore(t, memcachestore.Config{Addrs: []string{server.Addr}})
	var wg sync.WaitGroup
	for range 20 { // several connections
		wg.Go(func() { s.Peek(ctx, fives("a", "b")) })
	}
	wg.Wait()
	take(t, s, fives("a", "b")...)
	server.Kill()
	for verb, call := range everyCall(s, ctx) {
		err := call()
		require.Error(t, err, verb)
		require.NotErrorIs(t, err, context.DeadlineExceeded, verb)
		require.NotErrorAs(t, err, new(*limiter.ChargeError), verb)
	}
	for range 2 { // the second time with connections of the first
		server.Restart()
		take(t, s, fives("a", "b")...)
		require.EqualValues(t, 4, remaining(t, s, "a", five), "an amnesty")
		server.Kill()
	}
	server.Restart()
	take(t, s, fives("a", "b")...)
}
