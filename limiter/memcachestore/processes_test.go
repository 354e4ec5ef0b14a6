package memcachestore_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/memcachestore"
)

// RC-01, RC-05: 200 callers in four processes get five of five, at one instant of
// equal clocks, whoever is denied for contention coming again.
func TestFourProcessesGetTheLimit(t *testing.T) {
	if addr, ok := testkit.InProcess(); ok {
		s := newStore(t, memcachestore.Config{Addrs: []string{addr}, Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
		testkit.Answer(t, func(key string) string { return burst(s, key) })
		return
	}
	addr := testserver.Memcached(t)
	children := testkit.StartProcesses(t, 4, addr)
	for round := range 100 {
		admitted := 0
		for _, answer := range children.Ask("k" + strconv.Itoa(round)) {
			n, err := strconv.Atoi(answer)
			require.NoError(t, err, answer)
			admitted += n
		}
		require.Equal(t, 5, admitted, "round %d", round)
	}
}

// burst is what this process is admitted of key by 50 callers at one time.
func burst(s limiter.Store, key string) string {
	var admitted atomic.Int64
	var failed atomic.Value
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for {
				charges := fives(key)
				ok, err := s.Take(ctx, charges)
				switch {
				case err != nil:
					failed.Store(err.Error())
				case ok:
					admitted.Add(1)
				case charges[0].Decision.Remaining > 0:
					continue // contention
				}
				return
			}
		})
	}
	wg.Wait()
	if err, ok := failed.Load().(string); ok {
		return err
	}
	return strconv.FormatInt(admitted.Load(), 10)
}
