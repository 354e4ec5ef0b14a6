package guard_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter/denycache"
)

// channel tells nothing, and lives as long as it is told to.
type channel struct{ beats chan chan struct{} }

func (c channel) Listen(ctx context.Context, _ func(string), alive func(time.Duration)) error {
	for {
		select {
		case done := <-c.beats:
			alive(0)
			close(done)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c channel) beat() {
	done := make(chan struct{})
	c.beats <- done
	<-done
}

// A store that knows one rule to refuse does not ask the others: they are not
// reported as refusing, nor is it told where they stand.
func TestWhatWasNotAskedDoesNotRefuse(t *testing.T) {
	alive := channel{make(chan chan struct{})}
	quiet := guard.Rule{Name: "quiet", By: guard.ByIP, Limits: window(1, time.Hour), Effect: guard.Observe}
	var spy *spyStore
	var cache *denycache.Store
	b := newBench(t, func(c *guard.Config) {
		spy = &spyStore{Store: c.Store}
		var err error
		cache, err = denycache.New(denycache.Config{Store: spy, Channel: alive, Now: c.Now})
		require.NoError(t, err)
		c.Store = cache
	}, login(ipRule(20), accountRule(), quiet))
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	go cache.Run(running)
	alive.beat()

	b.fail(t, 5, by("alice", here))
	asked := b.requireDenied(t, 15*time.Minute, by("alice", here))
	require.Len(t, asked.Limits(), 2)
	b.clock.Advance(9 * time.Second)
	b.requireDenied(t, 15*time.Minute-9*time.Second, by("alice", here))
	b.clock.Advance(time.Second)
	alive.beat()
	takes, refused, observed := spy.takes, b.events.count(guard.Refused), b.events.count(guard.Observed)

	denied := b.requireDenied(t, 15*time.Minute-10*time.Second, by("alice", here))
	require.Equal(t, takes, spy.takes, "the store was asked")
	require.Equal(t, []string{"account"}, denied.Rules)
	require.Equal(t, 1, b.events.count(guard.Refused)-refused)
	require.Equal(t, observed, b.events.count(guard.Observed))
	limits := denied.Limits()
	require.Len(t, limits, 1)
	require.Equal(t, "account", limits[0].Rule)
	require.EqualValues(t, 5, limits[0].Used())
	h := http.Header{}
	edge, err := httpguard.New(httpguard.Config{Guard: b.Guard})
	require.NoError(t, err)
	edge.SetRateLimit(h, denied)
	require.Equal(t, "5", h.Get("X-RateLimit-Limit"))
	require.Equal(t, "0", h.Get("X-RateLimit-Remaining"))
	require.Equal(t, "1800000900", h.Get("X-RateLimit-Reset"))

	b.requireAdmitted(t, by("bob", here))
	require.NoError(t, b.Unlock(ctx, "alice"))
	b.requireAdmitted(t, by("alice", here))
}
