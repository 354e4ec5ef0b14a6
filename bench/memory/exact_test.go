package memory

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is compared admits the same: exactly the limit of each key, the floor
// included.
func TestContendersAdmitExactlyTheLimit(t *testing.T) {
	const limit, keys = 7, 300
	for _, m := range append(append([]maker{ours(oursWindow, window)}, ourLaws...), peers...) {
		takes, closing, err := m.make(limit, keys)
		require.NoError(t, err, m.name)
		ask := takes()
		for i := range keys {
			admitted := 0
			for range limit + 3 {
				ok, err := ask(name(i))
				require.NoError(t, err, m.name)
				if ok {
					admitted++
				}
			}
			require.Equal(t, limit, admitted, m.name)
		}
		closing()
	}
}
