package password_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/authdemo/password"
)

// EN-03: what is computed for an account that does not exist has the parameters
// of the hashes that are made today: the same memory, for any parameters.
func TestTheDummyHasTodaysParameters(t *testing.T) {
	allocated := func(work func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		work()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, kib := range []uint32{1 << 10, 4 << 10} {
		h := newHasher(t, password.Params{MemoryKiB: kib, Passes: 1, Threads: 1})
		hash := h.Hash("a password")
		verify := func(hash string) func() {
			return func() {
				ok, err := h.Verify("guess", hash)
				require.NoError(t, err)
				require.False(t, ok)
			}
		}
		known, unknown := allocated(verify(hash)), allocated(verify(""))
		require.GreaterOrEqual(t, unknown, uint64(kib)<<10)
		require.InEpsilon(t, known, unknown, 0.02)
	}
}
