package limiter_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

func TestSharesAddUpToTheWhole(t *testing.T) {
	all := append([]limiter.Limit{
		password,
		limiter.Backoff{Free: 1, Base: time.Second, Factor: 2, Max: time.Hour, LockAfter: 2, Forget: time.Hour, ForgetBeyond: time.Hour},
		limiter.Distinct{Limit: 10, Window: time.Hour},
		limiter.TokenBucket{Capacity: 10, Refill: 3, Per: time.Second},
		limiter.TokenBucket{Capacity: 31, Refill: 31, Per: 31 * day},
	}, laws...)
	for _, limit := range all {
		sharer, ok := limit.(limiter.Sharer)
		if !ok {
			continue // a law need not have shares
		}
		whole, _, err := limiter.Decide(limit, nil, nil, t0, limiter.Ask{})
		require.NoError(t, err)
		for _, n := range []int64{1, 2, 3, 7, 64, 1_000_000} {
			part := sharer.Share(n)
			require.NoError(t, part.Validate(), "%v of %d", limit, n)
			require.Equal(t, limit.Law(), part.Law())
			d, _, err := limiter.Decide(part, nil, nil, t0, limiter.Ask{})
			require.NoError(t, err)
			require.EqualValues(t, max(1, whole.Limit/n), d.Limit, "%v of %d", limit, n)
			if n == 1 {
				require.Equal(t, limit, part)
			}
		}
	}
	for n, want := range map[int64]string{2: "5 at once, 1 per 2s", 3: "3 at once, 1 per 3s", 10: "1 at once, 1 per 10s"} {
		require.Equal(t, want, fmt.Sprint(limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Second}.Share(n)))
	}
}
