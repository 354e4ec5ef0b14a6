package redisstore_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/redisstore"
)

// heard is what a listener has been told.
type heard struct {
	mu   sync.Mutex
	keys []string
	ages []time.Duration
	done chan error // how Listen ended
	end  context.CancelFunc
}

// listen listens to s until the test ends, or end is called.
func listen(t *testing.T, s *redisstore.Store) *heard {
	t.Helper()
	h := &heard{done: make(chan error, 1)}
	var listening context.Context
	listening, h.end = context.WithCancel(ctx)
	t.Cleanup(h.end)
	go func() {
		h.done <- s.Listen(listening, func(key string) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.keys = append(h.keys, key)
		}, func(age time.Duration) {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.ages = append(h.ages, age)
		})
	}()
	return h
}

// signs is how many signs of life there were.
func (h *heard) signs() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.ages)
}

func (h *heard) all() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.keys)
}

// lives waits for the next sign of life.
func (h *heard) lives(t *testing.T) {
	t.Helper()
	before := h.signs()
	require.Eventually(t, func() bool { return h.signs() > before }, time.Minute, 5*time.Millisecond)
}

func take(t *testing.T, s *redisstore.Store, want bool, charges ...limiter.Charge) []limiter.Charge {
	t.Helper()
	ok, err := s.Take(ctx, charges)
	require.NoError(t, err)
	require.Equal(t, want, ok)
	return charges
}

// A refund tells a key if it denied, and Forget tells each; a sign of life comes
// after all that was told before it.
func TestWhatIsSetFreeIsTold(t *testing.T) {
	addr := testserver.Redis(t)
	s := newStore(t, newClient(t, addr), nil)
	other := newStore(t, newClient(t, addr), nil)
	h := listen(t, other)
	h.lives(t)

	first := take(t, s, true, limiter.Charge{Key: "used up", Limit: five, Ask: limiter.Ask{Cost: 4}}, limiter.Charge{Key: "free", Limit: five, Ask: limiter.Ask{Cost: 4}})
	last := take(t, s, true, batch("used up")...)
	require.NoError(t, s.Refund(ctx, last))
	require.NoError(t, s.Refund(ctx, last), "there is nothing left to refund")
	take(t, s, false, limiter.Charge{Key: "used up", Limit: five, Ask: limiter.Ask{Cost: 2}})
	require.NoError(t, s.Refund(ctx, first), "neither denies")
	h.lives(t)
	require.Equal(t, []string{"used up"}, h.all())

	require.NoError(t, s.Forget(ctx, []string{"never seen", "free", "with \r\n and \x00"}))
	h.lives(t)
	require.Equal(t, []string{"used up", "never seen", "free", "with \r\n and \x00"}, h.all())
	for _, age := range h.ages {
		require.GreaterOrEqual(t, age, time.Duration(0))
		require.Less(t, age, time.Minute)
	}
	h.end()
	require.ErrorIs(t, <-h.done, context.Canceled)
}

// A lock that a success ends, and a log that it leaves as it is.
func TestASuccessThatEndsALockIsTold(t *testing.T) {
	s := newStore(t, newClient(t, testserver.Redis(t)), nil)
	h := listen(t, s)
	h.lives(t)
	lock := limiter.Backoff{Free: 1, Base: time.Minute, Factor: 2, Max: time.Hour, LockAfter: 80, Forget: time.Hour, ForgetBeyond: 24 * time.Hour}
	spraying := limiter.Distinct{Limit: 1, Window: time.Hour}
	success := take(t, s, true, limiter.Charge{Key: "streak", Limit: lock, Ask: limiter.Ask{Cost: 1}},
		limiter.Charge{Key: "members", Limit: spraying, Ask: limiter.Ask{Cost: 1, Member: limiter.Member("a")}})
	for i := range success {
		success[i].Cost = limiter.MaxLimit
	}
	require.NoError(t, s.Refund(ctx, success))
	h.lives(t)
	require.Equal(t, []string{"streak"}, h.all(), "a denial of a member is not remembered")
}

// Forget is one round trip, and so is a refund.
func TestTellingCostsNoRoundTrip(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	refund := func(key string) {
		require.NoError(t, s.Refund(ctx, take(t, s, true, limiter.Charge{Key: key, Limit: five, Ask: limiter.Ask{Cost: 5}})))
	}
	refund("warm")
	before := calls(t, client)
	refund("a")
	require.NoError(t, s.Forget(ctx, []string{"a", "b", "c"}))
	after := calls(t, client)
	require.Equal(t, 2, after["evalsha"]-before["evalsha"], "a charge and a refund")
	require.Equal(t, 3, after["eval"]-before["eval"], "in one message, a key each, which may lie on several nodes")
	require.Equal(t, 4, after["publish"]-before["publish"], "of which the network sees nothing")
}

// Who may not publish can refund and forget, but listens in vain: nobody would be
// told what this process sets free.
func TestAUserWhoMayNotPublish(t *testing.T) {
	addr := testserver.Redis(t)
	admin := newClient(t, addr)
	rights := []any{"ACL", "SETUSER", "limits", "on", ">secret", "~ag:*", "resetchannels", "&ag:released*", "+evalsha", "+eval", "+get", "+set", "+del", "+pttl", "+pexpire", "+time", "+hello", "+client"}
	require.NoError(t, admin.Do(ctx, rights...).Err())
	c, err := redisstore.NewClient("redis://limits:secret@" + addr)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	s := newStore(t, c, nil)
	used := take(t, s, true, limiter.Charge{Key: "ag:a", Limit: five, Ask: limiter.Ask{Cost: 5}})
	require.NoError(t, s.Refund(ctx, used))
	take(t, s, true, limiter.Charge{Key: "ag:a", Limit: five, Ask: limiter.Ask{Cost: 5}})
	require.NoError(t, s.Forget(ctx, []string{"ag:a"}))
	take(t, s, true, batch("ag:a")...)

	require.ErrorContains(t, <-listen(t, s).done, "NOPERM")
	require.NoError(t, admin.Do(ctx, "ACL", "SETUSER", "limits", "+subscribe").Err())
	h := listen(t, s)
	require.ErrorContains(t, <-h.done, "NOPERM")
	require.Zero(t, h.signs())

	require.NoError(t, admin.Do(ctx, "ACL", "SETUSER", "limits", "+publish").Err())
	h = listen(t, s)
	h.lives(t)
	require.NoError(t, s.Forget(ctx, []string{"ag:a"}))
	h.lives(t)
	require.Equal(t, []string{"ag:a"}, h.all())
}

// A connection that breaks ends Listen, so that nobody relies on what was missed.
func TestABrokenConnectionIsNotPatched(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	h := listen(t, s)
	h.lives(t)
	require.NoError(t, client.Do(ctx, "CLIENT", "KILL", "TYPE", "pubsub").Err())
	require.Error(t, <-h.done)
}

// A server that hangs gives no sign of life, and in the end is given up.
func TestAServerThatHangsGivesNoSign(t *testing.T) {
	client := newClient(t, testserver.Redis(t))
	s := newStore(t, client, nil)
	h := listen(t, s)
	h.lives(t)
	var stats *redis.StringCmd
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		stats = p.Info(ctx, "commandstats")
		return p.ClientPause(ctx, time.Minute).Err()
	})
	require.NoError(t, err)
	sent := called(stats.Val())["publish"] // some may still be under way to the listener
	require.Positive(t, sent)
	select {
	case err := <-h.done:
		require.Error(t, err)
	case <-time.After(time.Minute):
		require.Fail(t, "it still listens")
	}
	require.LessOrEqual(t, h.signs(), sent)
}

// After a failover the listener has the server that the store has.
func TestAListenerFollowsAFailover(t *testing.T) {
	cluster := testserver.Sentinel(t)
	c, err := redisstore.NewClient("redis+sentinel://" + cluster.Sentinels + "/" + cluster.Name)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	s := newStore(t, c, nil)
	h := listen(t, s)
	h.lives(t)
	cluster.KillPrimary()
	require.Error(t, <-h.done)
	require.Eventually(t, func() bool {
		h = listen(t, s)
		for range 500 {
			select {
			case <-h.done:
				return false
			case <-time.After(10 * time.Millisecond):
			}
			if h.signs() > 0 {
				return true
			}
		}
		h.end()
		<-h.done
		return false
	}, 3*time.Minute, 50*time.Millisecond)
	require.NoError(t, s.Forget(ctx, []string{"k"}))
	h.lives(t)
	require.Equal(t, []string{"k"}, h.all())
	require.IsType(t, &redis.Client{}, c)
}
