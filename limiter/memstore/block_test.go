package memstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
	"authguard/limiter/memstore"
)

// A flood of invented names must not set a blocked one free, however long ago it was
// blocked, and checks of whom nobody has blocked take no memory.
func TestAFloodLeavesBlocks(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := memstore.New(memstore.Config{MaxBytes: 128 << 10, Now: func() time.Time { return now }})
	take := func(key string, l limiter.Limit) bool {
		ok, err := s.Take(t.Context(), []limiter.Charge{{Key: key, Limit: l, Ask: limiter.Ask{Cost: 1}}})
		require.NoError(t, err)
		return ok
	}
	for i := range 20 {
		require.True(t, take(fmt.Sprint("blocked ", i), limiter.Block{For: 24 * time.Hour}))
	}
	now = now.Add(time.Hour)
	for i := range 20_000 {
		require.True(t, take(fmt.Sprint("invented ", i), limiter.SlidingWindow{Limit: 2, Window: time.Hour}))
	}
	require.NotZero(t, s.Stats().Evicted)
	full := 0
	for i := range 20_000 { // each of which denies, and must stay like the blocked
		_, err := s.Take(t.Context(), []limiter.Charge{{Key: fmt.Sprint("spent ", i), Limit: limiter.SlidingWindow{Limit: 1, Window: time.Hour}, Ask: limiter.Ask{Cost: 1}}})
		if err != nil {
			require.ErrorIs(t, err, memstore.ErrFull)
			full++
		}
	}
	require.NotZero(t, full)
	keys := s.Stats().Keys
	for i := range 1_000 {
		require.True(t, take(fmt.Sprint("nobody ", i), limiter.Block{}))
	}
	require.Equal(t, keys, s.Stats().Keys)
	for i := range 20 {
		require.False(t, take(fmt.Sprint("blocked ", i), limiter.Block{}), "%d", i)
	}
}
