package redisstore_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
)

// Concurrent checks share scripts, and each is decided as if it were alone.
func TestConcurrentChecksAreGathered(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	_, err := s.Take(ctx, batch("warm"))
	require.NoError(t, err)
	before := calls(t, client)["evalsha"]
	const callers, each = 64, 50
	var admitted atomic.Int64
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range callers {
		wg.Go(func() {
			<-start
			for n := range each {
				ok, err := s.Take(ctx, batch(fmt.Sprint("k", n), fmt.Sprint("other", i, n)))
				if err == nil && ok {
					admitted.Add(1)
				}
			}
		})
	}
	close(start)
	wg.Wait()
	require.EqualValues(t, 5*each, admitted.Load(), "five on each of the keys that all share")
	require.Less(t, calls(t, client)["evalsha"]-before, callers*each/4)
}

// However many give up, at whatever moment, the line goes on for those who come.
func TestGivingUpNeverStopsTheLine(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	_, err := s.Take(ctx, batch("warm"))
	require.NoError(t, err)
	for round := range 200 {
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				hurried, cancel := context.WithCancel(ctx)
				defer cancel()
				time.AfterFunc(time.Duration((i*37+round)%1500)*time.Microsecond, cancel)
				s.Take(hurried, batch(fmt.Sprint("k", i))) // decided or given up
			})
		}
		patient, cancel := context.WithTimeout(ctx, time.Minute)
		_, err := s.Take(patient, batch(fmt.Sprint("patient", round)))
		cancel()
		require.NoError(t, err, "round %d", round)
		wg.Wait()
	}
}

// One who gives up, and one whose key is not ours, spoil nothing for the others
// behind a call that takes its time.
func TestCallsThatWaitInLine(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	_, err := s.Take(ctx, batch("warm"))
	require.NoError(t, err)
	require.NoError(t, client.Set(ctx, "alien", "x", 0).Err())
	require.NoError(t, client.ClientPause(ctx, 700*time.Millisecond).Err())

	var wg sync.WaitGroup
	take := func(ctx context.Context, key string, want error) {
		wg.Go(func() {
			c := batch(key)
			ok, err := s.Take(ctx, c)
			if want != nil {
				require.ErrorIs(t, err, want, key)
				return
			}
			require.NoError(t, err, key)
			require.True(t, ok, key)
		})
	}
	take(ctx, "first", nil)
	hurried, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	take(hurried, "hurried", context.DeadlineExceeded)
	take(ctx, "alien", limiter.ErrState)
	take(ctx, "patient", nil)
	wg.Wait()
	look := batch("first", "hurried", "patient")
	for i := range look {
		look[i].Limit = five
	}
	require.NoError(t, s.Peek(ctx, look))
	require.EqualValues(t, 4, look[0].Decision.Remaining)
	require.GreaterOrEqual(t, look[1].Decision.Remaining, int64(4), "at most what was under way is charged")
	require.EqualValues(t, 4, look[2].Decision.Remaining)
	for range 4 { // the line goes on
		_, err := s.Take(ctx, batch("first"))
		require.NoError(t, err)
	}
}

// A deadline is told as one, whether the context or a socket notices it first.
func TestADeadlineIsToldAsOne(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	require.NoError(t, client.ClientPause(ctx, time.Minute).Err())
	for range 40 {
		hurried, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		_, err := s.Take(hurried, batch("k"))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorIs(t, s.Forget(hurried, []string{"k"}), context.DeadlineExceeded)
		cancel()
	}
}

// However many calls wait, and however much work they are, the server does other
// things in between.
func TestScriptsStayShort(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	for _, c := range []struct {
		name       string
		limit      limiter.Limit
		keys       int // of a call
		most, seen int // of keys in a script
	}{
		{"single", limiter.FixedWindow{Limit: 1000, Window: time.Hour}, 1, 128, 100},
		{"long", limiter.FixedWindow{Limit: 1000, Window: time.Hour}, 12, 256, 200},
		{"log", limiter.SlidingWindow{Limit: 1000, Window: time.Hour}, 2, 4, 4},
		{"members", limiter.Distinct{Limit: 1000, Window: time.Hour}, 12, 12, 12},
	} {
		require.NoError(t, client.ConfigSet(ctx, "slowlog-log-slower-than", "0").Err())
		require.NoError(t, client.ConfigSet(ctx, "slowlog-max-len", "10000").Err())
		require.NoError(t, client.SlowLogReset(ctx).Err())
		require.NoError(t, client.ClientPause(ctx, 500*time.Millisecond).Err())
		var wg sync.WaitGroup
		for range 300 {
			wg.Go(func() {
				charges := make([]limiter.Charge, c.keys)
				for i := range charges {
					charges[i] = limiter.Charge{Key: fmt.Sprint(c.name, i), Limit: c.limit, Ask: limiter.Ask{Cost: 1, Member: limiter.Member("m")}}
				}
				ok, err := s.Take(ctx, charges)
				if err != nil || !ok {
					t.Error(ok, err)
				}
			})
		}
		wg.Wait()
		logs, err := client.SlowLogGet(ctx, -1).Result()
		require.NoError(t, err)
		seen, longest := 0, time.Duration(0)
		for _, l := range logs {
			if l.Args[0] == "evalsha" {
				n, err := strconv.Atoi(l.Args[2])
				require.NoError(t, err)
				require.LessOrEqual(t, n, c.most, c.name)
				seen, longest = max(seen, n), max(longest, l.Duration)
			}
		}
		require.GreaterOrEqual(t, seen, c.seen, c.name)
		t.Logf("%s: %d keys in a script, the longest took %v", c.name, seen, longest)
	}
}
