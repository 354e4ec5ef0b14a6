package limitertest

import (
	"sync"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

var checkBlock = limiter.Block{} // what every ask of a key that may be blocked is charged to

func blockFor(d time.Duration) limiter.Block { return limiter.Block{For: d} }

// A law whose admissions write nothing, and whose state is written by another value
// of it: a block is exact, alone and beside what counts.
func blocks(r *rig) {
	both := func() []limiter.Charge { return []limiter.Charge{one("b", checkBlock), one("n", five)} }
	r.admitted(one("b", checkBlock))
	require.EqualValues(r.t, 1, r.remaining("b", checkBlock))
	r.admitted(both()...)

	r.admitted(one("b", blockFor(time.Hour)))
	require.EqualValues(r.t, 0, r.remaining("b", checkBlock))
	denied := r.denied(both()...)
	require.Equal(r.t, time.Hour, denied[0].Decision.RetryAfter)
	require.EqualValues(r.t, 4, r.remaining("n", five), "what is blocked is charged nothing")
	r.clock.advance(time.Minute)
	require.Equal(r.t, 59*time.Minute, r.denied(one("b", checkBlock))[0].Decision.RetryAfter)

	r.denied(one("b", blockFor(time.Minute))) // a longer one stands
	require.Equal(r.t, 59*time.Minute, r.peek(one("b", checkBlock)).RetryAfter)
	r.admitted(one("b", blockFor(2*time.Hour)))
	r.clock.advance(2*time.Hour - time.Microsecond)
	require.Equal(r.t, time.Microsecond, r.denied(both()...)[0].Decision.RetryAfter)
	r.clock.advance(time.Microsecond)
	r.refund(r.admitted(both()...))
	require.EqualValues(r.t, 5, r.remaining("n", five))

	r.admitted(one("b", blockFor(time.Hour)))
	require.NoError(r.t, r.store.Forget(r.t.Context(), []string{"b"}))
	r.admitted(both()...)
}

// Checks, blocks and their end at one time: nobody passes between a block that was
// answered and the Forget that ends it.
func blocksAtOneTime(r *rig) {
	ctx := r.t.Context()
	stop := make(chan struct{})
	var busy sync.WaitGroup
	for range 4 {
		busy.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := r.store.Take(ctx, []limiter.Charge{one("b", checkBlock), one("n", hundred)}); err != nil {
					r.t.Errorf("check: %v", err)
					return
				}
			}
		})
	}
	for range 50 {
		var blocking sync.WaitGroup
		for _, d := range []time.Duration{time.Minute, time.Hour, time.Second} {
			blocking.Go(func() {
				for { // a crowd on one key may be told to come again
					charge := []limiter.Charge{one("b", blockFor(d))}
					ok, err := r.store.Take(ctx, charge)
					if err != nil {
						r.t.Errorf("block: %v", err)
					}
					if ok || err != nil || !r.compensating || r.peek(one("b", checkBlock)).RetryAfter >= d {
						return
					}
				}
			})
		}
		blocking.Wait()
		ok, err := r.store.Take(ctx, []limiter.Charge{one("b", checkBlock), one("n", hundred)})
		require.NoError(r.t, err)
		require.False(r.t, ok, "somebody passed a block")
		require.Equal(r.t, time.Hour, r.peek(one("b", checkBlock)).RetryAfter, "the longest of the blocks stands")
		require.NoError(r.t, r.store.Forget(ctx, []string{"b"}))
		require.True(r.t, r.peek(one("b", checkBlock)).Allowed)
	}
	close(stop)
	busy.Wait()
}
