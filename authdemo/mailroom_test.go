package authdemo

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
)

func TestMailRoomSendsInOrderAndDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailRoom(slog.New(slog.DiscardHandler))
		var sent []int
		for i := range 10 {
			m.enqueue(func(context.Context) error {
				time.Sleep(time.Second)
				sent = append(sent, i)
				return errors.New("one that fails stops no other")
			})
		}
		require.NoError(t, m.close(t.Context()))
		assert.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, sent)
	})
}

func TestMailRoomDropsWhatFindsNoPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(testkit.Buffer)
		m := newMailRoom(slog.New(slog.NewTextHandler(log, nil)))
		release := make(chan struct{})
		sent := 0
		m.enqueue(func(context.Context) error { <-release; return nil })
		synctest.Wait()
		for range mailPlaces + 3 {
			m.enqueue(func(context.Context) error { sent++; return nil })
		}
		close(release)
		require.NoError(t, m.close(t.Context()))
		assert.Equal(t, mailPlaces, sent)
		assert.Contains(t, log.String(), "mail dropped")
	})
}

func TestMailRoomCloseWaitsNoLongerThanItMay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMailRoom(slog.New(slog.DiscardHandler))
		m.enqueue(func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, m.close(ctx), context.DeadlineExceeded)
		time.Sleep(mailTimeout) // the worker ends with its job
	})
}

// Whoever closes it late is not told of mails that were sent long ago.
func TestMailRoomCloseLooksForTheEndFirst(t *testing.T) {
	m := newMailRoom(slog.New(slog.DiscardHandler))
	require.NoError(t, m.close(t.Context()))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // select chooses at random
		require.NoError(t, m.close(ended))
	}
}
