package redisstore_test

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
	"authguard/internal/testserver"
)

// RC-01: 200 callers in four processes get five of five, at one instant of equal
// clocks.
func TestFourProcessesGetTheLimit(t *testing.T) {
	if addr, ok := testkit.InProcess(); ok {
		s := newStore(t, newClient(t, addr), func() time.Time { return time.Unix(1_800_000_000, 0) })
		testkit.Answer(t, func(key string) string {
			var admitted, failed atomic.Int64
			var wg sync.WaitGroup
			for range 50 {
				wg.Go(func() {
					switch ok, err := s.Take(ctx, batch(key)); {
					case err != nil:
						failed.Add(1)
					case ok:
						admitted.Add(1)
					}
				})
			}
			wg.Wait()
			if failed.Load() > 0 {
				return strconv.FormatInt(failed.Load(), 10) + " calls failed"
			}
			return strconv.FormatInt(admitted.Load(), 10)
		})
		return
	}
	addr := testserver.Redis(t)
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
