package accounts_test

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/authdemo/accounts"
)

// Of all processes that would tell an owner the same, one may, once a day.
func TestANoticeIsTakenOnceADay(t *testing.T) {
	path, c := filepath.Join(t.TempDir(), "demo.db"), newClock()
	stores := []*accounts.Store{open(t, path, c), open(t, path, c)}
	a, other := withAccount(t, stores[0], "a@example.com"), withAccount(t, stores[0], "b@example.com")
	took := func(account int64, kind string) int64 {
		var n atomic.Int64
		var wg sync.WaitGroup
		for i := range 16 {
			wg.Go(func() {
				ok, err := stores[i%2].TakeNotice(t.Context(), account, kind)
				if err != nil {
					t.Error(err)
				}
				if ok {
					n.Add(1)
				}
			})
		}
		wg.Wait()
		return n.Load()
	}
	require.EqualValues(t, 1, took(a.ID, "locked"))
	require.EqualValues(t, 1, took(a.ID, "password"), "each kind for itself")
	require.EqualValues(t, 1, took(other.ID, "locked"), "each account for itself")
	c.advance(24*time.Hour - time.Second)
	require.Zero(t, took(a.ID, "locked"))
	c.advance(time.Second)
	require.EqualValues(t, 1, took(a.ID, "locked"))
	require.Zero(t, took(a.ID, "locked"))
	_, err := stores[0].TakeNotice(t.Context(), 99, "locked")
	require.Error(t, err, "of nobody")
}
