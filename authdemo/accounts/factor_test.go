package accounts_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/authdemo/accounts"
)

func withFactor(t *testing.T, s *accounts.Store, email string) accounts.Factor {
	t.Helper()
	a := withAccount(t, s, email)
	require.NoError(t, s.BeginFactor(t.Context(), a.ID, []byte("sealed")))
	f, err := s.BegunFactor(t.Context(), a.ID)
	require.NoError(t, err)
	require.NoError(t, s.ConfirmFactor(t.Context(), f, 100, [][]byte{[]byte("one"), []byte("two")}))
	f, err = s.Factor(t.Context(), a.ID)
	require.NoError(t, err)
	return f
}

func TestAFactorIsOnceConfirmed(t *testing.T) {
	s, c := newStore(t)
	a := withAccount(t, s, "a@example.com")
	_, err := s.Factor(t.Context(), a.ID)
	require.ErrorIs(t, err, accounts.ErrNotFound)
	require.NoError(t, s.BeginFactor(t.Context(), a.ID, []byte("first")))
	first, err := s.BegunFactor(t.Context(), a.ID)
	require.NoError(t, err)
	require.NoError(t, s.BeginFactor(t.Context(), a.ID, []byte("second")))
	require.ErrorIs(t, s.ConfirmFactor(t.Context(), first, 100, nil), accounts.ErrNotFound, "another took its place")
	_, err = s.Factor(t.Context(), a.ID)
	require.ErrorIs(t, err, accounts.ErrNotFound)

	f, err := s.BegunFactor(t.Context(), a.ID)
	require.NoError(t, err)
	require.NoError(t, s.ConfirmFactor(t.Context(), f, 100, [][]byte{[]byte("one"), []byte("two")}))
	require.ErrorIs(t, s.ConfirmFactor(t.Context(), f, 101, nil), accounts.ErrNotFound)
	require.ErrorIs(t, s.BeginFactor(t.Context(), a.ID, []byte("third")), accounts.ErrFactorOn)
	_, err = s.BegunFactor(t.Context(), a.ID)
	require.ErrorIs(t, err, accounts.ErrNotFound)
	on, err := s.Factor(t.Context(), a.ID)
	require.NoError(t, err)
	require.Equal(t, accounts.Factor{Account: a.ID, AppKey: []byte("second"), Since: time.Unix(c.now().Unix(), 0), Left: 2}, on)

	require.NoError(t, s.DropFactor(t.Context(), a.ID))
	_, err = s.Factor(t.Context(), a.ID)
	require.ErrorIs(t, err, accounts.ErrNotFound)
	require.ErrorIs(t, s.UseRecoveryCode(t.Context(), a.ID, []byte("one")), accounts.ErrUsed, "its codes went with it")
	require.ErrorIs(t, s.UseStep(t.Context(), on, 200), accounts.ErrUsed)
}

func TestEachStepIsTakenOnce(t *testing.T) {
	s, _ := newStore(t)
	f, other := withFactor(t, s, "a@example.com"), withFactor(t, s, "b@example.com")
	require.ErrorIs(t, s.UseStep(t.Context(), f, 100), accounts.ErrUsed, "the one that has confirmed it")
	once(t, func(ctx context.Context) error { return s.UseStep(ctx, f, 102) })
	require.ErrorIs(t, s.UseStep(t.Context(), f, 101), accounts.ErrUsed, "nor one from before it")
	require.NoError(t, s.UseStep(t.Context(), f, 103))
	require.NoError(t, s.UseStep(t.Context(), other, 101), "another account's are its own")

	require.NoError(t, s.DropFactor(t.Context(), f.Account))
	require.NoError(t, s.BeginFactor(t.Context(), f.Account, []byte("new")))
	begun, err := s.BegunFactor(t.Context(), f.Account)
	require.NoError(t, err)
	require.ErrorIs(t, s.UseStep(t.Context(), begun, 200), accounts.ErrUsed, "it is not on")
	require.NoError(t, s.ConfirmFactor(t.Context(), begun, 104, nil))
	require.ErrorIs(t, s.UseStep(t.Context(), f, 200), accounts.ErrUsed, "another key by now")
}

func TestEachRecoveryCodeIsTakenOnce(t *testing.T) {
	s, _ := newStore(t)
	f, other := withFactor(t, s, "a@example.com"), withFactor(t, s, "b@example.com")
	once(t, func(ctx context.Context) error { return s.UseRecoveryCode(ctx, f.Account, []byte("one")) })
	require.ErrorIs(t, s.UseRecoveryCode(t.Context(), f.Account, []byte("three")), accounts.ErrUsed)
	for id, left := range map[int64]int{f.Account: 1, other.Account: 2} {
		f, err := s.Factor(t.Context(), id)
		require.NoError(t, err)
		require.Equal(t, left, f.Left)
	}
}

// once has use succeed once of twenty at one instant.
func once(t *testing.T, use func(context.Context) error) {
	t.Helper()
	var worked atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := use(context.Background()); err == nil {
				worked.Add(1)
			} else {
				assert.ErrorIs(t, err, accounts.ErrUsed)
			}
		})
	}
	wg.Wait()
	require.EqualValues(t, 1, worked.Load())
}

// Accounts of a database that knew no second factors go on without one.
func TestAccountsFromBeforeSecondFactorsCanHaveOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	for _, file := range []string{"schema/1.sql", "schema/2.sql"} {
		script, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = db.Exec(string(script))
		require.NoError(t, err)
	}
	_, err = db.Exec(`PRAGMA user_version = 2; INSERT INTO accounts (id, email, password_hash, created) VALUES (7, 'a@example.com', 'hash', 0)`)
	require.NoError(t, err)
	require.NoError(t, db.Close())

	s := open(t, path, newClock())
	_, err = s.Factor(t.Context(), 7)
	require.ErrorIs(t, err, accounts.ErrNotFound)
	require.NoError(t, s.BeginFactor(t.Context(), 7, []byte("sealed")))
	f, err := s.BegunFactor(t.Context(), 7)
	require.NoError(t, err)
	require.NoError(t, s.ConfirmFactor(t.Context(), f, 100, nil))
	_, err = s.Factor(t.Context(), 7)
	require.NoError(t, err)
}
