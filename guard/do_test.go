package guard_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/guard"
)

func TestDoSettlesByWhatHappened(t *testing.T) {
	fault := errors.New("database is down")
	for _, c := range []struct {
		name   string
		verify func(context.Context, context.CancelFunc) (bool, error)
		ok     bool
		err    error
		left   []int64 // account, ip
	}{
		{"right", func(context.Context, context.CancelFunc) (bool, error) { return true, nil }, true, nil, []int64{0, 0}},
		{"wrong", func(context.Context, context.CancelFunc) (bool, error) { return false, nil }, false, nil, []int64{1, 1}},
		{"fault", func(context.Context, context.CancelFunc) (bool, error) { return false, fault }, false, fault, []int64{0, 0}},
		{"true with a fault is no success", func(context.Context, context.CancelFunc) (bool, error) { return true, fault }, false, fault, []int64{0, 0}},
		{"no room", func(context.Context, context.CancelFunc) (bool, error) { return false, guard.ErrBusy }, false, guard.ErrBusy, []int64{0, 0}},
		{"hung up, wrong", func(_ context.Context, hangUp context.CancelFunc) (bool, error) { hangUp(); return false, nil }, false, context.Canceled, []int64{1, 1}},
		{"hung up, right", func(_ context.Context, hangUp context.CancelFunc) (bool, error) { hangUp(); return true, nil }, false, context.Canceled, []int64{1, 1}},
		{"hung up, with a fault", func(c context.Context, hangUp context.CancelFunc) (bool, error) { hangUp(); return false, c.Err() }, false, context.Canceled, []int64{1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, nil, login(accountRule(), ipRule(20)))
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			ok, err := b.Do(ctx, by("Bob", here), func(ctx context.Context, p *guard.Pass) (bool, error) {
				require.Equal(t, "bob", p.Account)
				return c.verify(ctx, cancel)
			})
			require.Equal(t, c.ok, ok)
			require.ErrorIs(t, err, c.err)
			require.Equal(t, c.left, b.used(t, by("bob", here)))
		})
	}
}

func TestDoCountsAPanicAsAFailure(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	require.Panics(t, func() {
		b.Do(ctx, by("bob", here), func(context.Context, *guard.Pass) (bool, error) { panic("oops") })
	})
	require.Equal(t, []int64{1}, b.used(t, by("bob", here)))
	require.Equal(t, 1, b.events.count(guard.Failed))
}

func TestDoDoesNotVerifyWhenRefused(t *testing.T) {
	b := newBench(t, nil, login(accountRule()))
	b.fail(t, 5, by("bob", here))
	ok, err := b.Do(ctx, by("bob", here), func(context.Context, *guard.Pass) (bool, error) {
		t.Fatal("verified")
		return true, nil
	})
	require.False(t, ok)
	require.ErrorAs(t, err, new(*guard.Denied))
}
