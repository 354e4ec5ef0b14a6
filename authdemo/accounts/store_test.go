package accounts_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/authdemo/accounts"
)

var _ scs.CtxStore = accounts.Sessions{}

type clock struct{ t atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(c.t.Load(), 0) }
func (c *clock) advance(d time.Duration) { c.t.Add(int64(d / time.Second)) }

func newClock() *clock {
	c := new(clock)
	c.t.Store(1_800_000_000)
	return c
}

func open(t *testing.T, path string, c *clock) *accounts.Store {
	t.Helper()
	s, err := accounts.Open(t.Context(), path, c.now)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func newStore(t *testing.T) (*accounts.Store, *clock) {
	t.Helper()
	c := newClock()
	return open(t, filepath.Join(t.TempDir(), "demo.db"), c), c
}

func withAccount(t *testing.T, s *accounts.Store, email string) accounts.Account {
	t.Helper()
	require.NoError(t, s.Restore(t.Context(), email, "hash"))
	a, err := s.ByEmail(t.Context(), email)
	require.NoError(t, err)
	return a
}

func token(t *testing.T, s *accounts.Store, p accounts.Purpose, email string) string {
	t.Helper()
	tok, err := s.NewToken(t.Context(), p, email)
	require.NoError(t, err)
	return tok
}

func TestFilesAreTheirOwnersAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "with ? and # and %41", "demo.db")
	s := open(t, path, newClock())
	withAccount(t, s, "a@example.com")
	dir, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	assert.EqualValues(t, 0o700, dir.Mode().Perm())
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, info.Mode().Perm(), e.Name())
		assert.True(t, strings.HasPrefix(e.Name(), "demo.db"), e.Name())
	}
}

func TestProcessesMayStartTogetherOnANewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.db")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			s, err := accounts.Open(context.Background(), path, time.Now)
			if !assert.NoError(t, err) {
				return
			}
			defer s.Close()
			assert.NoError(t, s.Restore(context.Background(), "a@example.com", "hash"))
			assert.NoError(t, s.Ping(context.Background()))
		})
	}
	wg.Wait()
}

func TestSchemaOfALaterVersionIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.Exec("PRAGMA user_version = 99")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	_, err = accounts.Open(t.Context(), path, time.Now)
	require.ErrorContains(t, err, "version 99")
}

// Keys of a database that knew no tiers go on, as free ones.
func TestKeysFromBeforeTiersAreFree(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.db")
	first, err := os.ReadFile("schema/1.sql")
	require.NoError(t, err)
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	_, err = db.Exec(string(first) + "PRAGMA user_version = 1")
	require.NoError(t, err)
	hash := sha256.Sum256([]byte("ag_old"))
	_, err = db.Exec(`INSERT INTO accounts (id, email, password_hash, created) VALUES (7, 'a@example.com', 'hash', 0);
		INSERT INTO api_keys (hash, account, created) VALUES (?, 7, 0)`, hash[:])
	require.NoError(t, err)
	require.NoError(t, db.Close())

	s := open(t, path, newClock())
	old, err := s.ByKey(t.Context(), "ag_old")
	require.NoError(t, err)
	assert.Equal(t, accounts.Free, old.Tier)
	assert.Equal(t, "a@example.com", old.Owner.Email)
	for _, tier := range []accounts.Tier{accounts.Free, accounts.Pro} {
		key, err := s.NewKey(t.Context(), old.Owner.ID, tier)
		require.NoError(t, err)
		k, err := s.ByKey(t.Context(), key)
		require.NoError(t, err)
		assert.Equal(t, tier, k.Tier)
	}
	_, err = s.NewKey(t.Context(), old.Owner.ID, "gold")
	require.Error(t, err)
}

func TestConfirmMakesTheAccountOnce(t *testing.T) {
	s, _ := newStore(t)
	first, second := token(t, s, accounts.ForConfirm, "a@example.com"), token(t, s, accounts.ForConfirm, "a@example.com")
	_, err := s.ByEmail(t.Context(), "a@example.com")
	require.ErrorIs(t, err, accounts.ErrNotFound, "until then there is no account")

	_, err = s.Reset(t.Context(), first, "hash")
	require.ErrorIs(t, err, accounts.ErrInvalidToken, "a token is good for its own purpose only")

	a, err := s.Confirm(t.Context(), first, "hash")
	require.NoError(t, err)
	assert.Equal(t, "a@example.com", a.Email)
	for _, tok := range []string{first, second, "", "x"} {
		_, err = s.Confirm(t.Context(), tok, "another")
		require.ErrorIs(t, err, accounts.ErrInvalidToken)
	}
	a, err = s.ByID(t.Context(), a.ID)
	require.NoError(t, err)
	assert.Equal(t, "hash", a.PasswordHash)
}

func TestConfirmNeverChangesAnAccount(t *testing.T) {
	s, _ := newStore(t)
	tok := token(t, s, accounts.ForConfirm, "a@example.com")
	a := withAccount(t, s, "a@example.com")
	_, err := s.Confirm(t.Context(), tok, "another")
	require.ErrorIs(t, err, accounts.ErrInvalidToken)
	now, err := s.ByID(t.Context(), a.ID)
	require.NoError(t, err)
	assert.Equal(t, a, now)
}

func TestResetKillsAllLinks(t *testing.T) {
	s, _ := newStore(t)
	a := withAccount(t, s, "a@example.com")
	withAccount(t, s, "b@example.com")
	first, second := token(t, s, accounts.ForReset, a.Email), token(t, s, accounts.ForReset, a.Email)
	other := token(t, s, accounts.ForReset, "b@example.com")

	email, err := s.TokenEmail(t.Context(), accounts.ForReset, first)
	require.NoError(t, err, "a newer link kills none, and looking uses none up")
	assert.Equal(t, a.Email, email)

	b, err := s.Reset(t.Context(), first, "new")
	require.NoError(t, err)
	assert.Equal(t, accounts.Account{ID: a.ID, Email: a.Email, PasswordHash: "new", Generation: a.Generation + 1, DeviceGeneration: a.DeviceGeneration + 1}, b)
	for _, tok := range []string{first, second} {
		_, err = s.Reset(t.Context(), tok, "newer")
		require.ErrorIs(t, err, accounts.ErrInvalidToken)
	}
	_, err = s.TokenEmail(t.Context(), accounts.ForReset, other)
	require.NoError(t, err, "other accounts keep theirs")
}

func TestOneTokenWorksOnceHoweverManyTryAtOnce(t *testing.T) {
	s, _ := newStore(t)
	withAccount(t, s, "a@example.com")
	tok := token(t, s, accounts.ForReset, "a@example.com")
	var worked atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := s.Reset(context.Background(), tok, "new"); err == nil {
				worked.Add(1)
			} else {
				assert.ErrorIs(t, err, accounts.ErrInvalidToken)
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 1, worked.Load())
}

func TestTokensExpire(t *testing.T) {
	s, c := newStore(t)
	withAccount(t, s, "a@example.com")
	tok := token(t, s, accounts.ForReset, "a@example.com")
	c.advance(accounts.TokenLifetime - time.Second)
	_, err := s.TokenEmail(t.Context(), accounts.ForReset, tok)
	require.NoError(t, err)
	c.advance(time.Second)
	_, err = s.TokenEmail(t.Context(), accounts.ForReset, tok)
	require.ErrorIs(t, err, accounts.ErrInvalidToken)
	_, err = s.Reset(t.Context(), tok, "new")
	require.ErrorIs(t, err, accounts.ErrInvalidToken)
}

func TestChangePassword(t *testing.T) {
	s, _ := newStore(t)
	a := withAccount(t, s, "a@example.com")
	tok := token(t, s, accounts.ForReset, a.Email)
	b, err := s.ChangePassword(t.Context(), a, "new")
	require.NoError(t, err)
	assert.Equal(t, accounts.Account{ID: a.ID, Email: a.Email, PasswordHash: "new", Generation: a.Generation + 1, DeviceGeneration: a.DeviceGeneration + 1}, b)
	_, err = s.ChangePassword(t.Context(), a, "newer")
	require.ErrorIs(t, err, accounts.ErrNotFound, "of two changes at once, one is refused")
	_, err = s.TokenEmail(t.Context(), accounts.ForReset, tok)
	require.ErrorIs(t, err, accounts.ErrInvalidToken)
}

func TestAtMostFiveKeysHoweverManyAreAskedAtOnce(t *testing.T) {
	s, _ := newStore(t)
	a := withAccount(t, s, "a@example.com")
	var keys sync.Map
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if key, err := s.NewKey(context.Background(), a.ID, accounts.Free); err == nil {
				keys.Store(key, true)
			} else {
				assert.ErrorIs(t, err, accounts.ErrTooManyKeys)
			}
		})
	}
	wg.Wait()
	n := 0
	keys.Range(func(key, _ any) bool {
		n++
		k, err := s.ByKey(t.Context(), key.(string))
		require.NoError(t, err)
		assert.Equal(t, a, k.Owner)
		assert.True(t, strings.HasPrefix(key.(string), "ag_"))
		return true
	})
	assert.Equal(t, accounts.MaxKeys, n)
	_, err := s.ByKey(t.Context(), "ag_wrong")
	require.ErrorIs(t, err, accounts.ErrNotFound)
}

func TestNoSecretIsStoredAsItIs(t *testing.T) {
	c := newClock()
	path := filepath.Join(t.TempDir(), "demo.db")
	s, err := accounts.Open(t.Context(), path, c.now)
	require.NoError(t, err)
	a := withAccount(t, s, "a@example.com")
	tok := token(t, s, accounts.ForReset, a.Email)
	key, err := s.NewKey(t.Context(), a.ID, accounts.Pro)
	require.NoError(t, err)
	require.NoError(t, s.Close()) // writes the journal into the file
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(raw), a.Email)
	assert.NotContains(t, string(raw), tok)
	assert.NotContains(t, string(raw), strings.TrimPrefix(key, "ag_"))
}

func TestSessionsExpireByTheStoresClock(t *testing.T) {
	s, c := newStore(t)
	sessions := accounts.Sessions{Store: s}
	require.NoError(t, sessions.Commit("token", []byte("data"), time.Now().Add(time.Hour)))
	require.NoError(t, sessions.Commit("token", []byte("later"), time.Now().Add(time.Hour)))
	data, found, err := sessions.Find("token")
	require.NoError(t, err)
	require.True(t, found)
	assert.Equal(t, "later", string(data))

	c.advance(time.Hour)
	_, found, err = sessions.Find("token")
	require.NoError(t, err)
	assert.False(t, found)

	require.NoError(t, sessions.Commit("other", []byte("data"), time.Now().Add(time.Hour)))
	require.NoError(t, sessions.Delete("other"))
	_, found, err = sessions.Find("other")
	require.NoError(t, err)
	assert.False(t, found)
}

func TestARestoredAccountIsAsNew(t *testing.T) {
	s, _ := newStore(t)
	a, other := withAccount(t, s, "a@example.com"), withAccount(t, s, "b@example.com")
	keys := make(map[int64]string)
	for _, id := range []int64{a.ID, a.ID, other.ID} {
		key, err := s.NewKey(t.Context(), id, accounts.Free)
		require.NoError(t, err)
		keys[id] = key
	}
	reset, others := token(t, s, accounts.ForReset, a.Email), token(t, s, accounts.ForReset, other.Email)

	require.NoError(t, s.Restore(t.Context(), a.Email, "new"))
	b, err := s.ByEmail(t.Context(), a.Email)
	require.NoError(t, err)
	require.Equal(t, accounts.Account{ID: a.ID, Email: a.Email, PasswordHash: "new", Generation: a.Generation + 1, DeviceGeneration: a.DeviceGeneration + 1}, b)
	_, err = s.ByKey(t.Context(), keys[a.ID])
	require.ErrorIs(t, err, accounts.ErrNotFound)
	_, err = s.TokenEmail(t.Context(), accounts.ForReset, reset)
	require.ErrorIs(t, err, accounts.ErrInvalidToken)
	for range accounts.MaxKeys {
		_, err = s.NewKey(t.Context(), a.ID, accounts.Free)
		require.NoError(t, err)
	}

	key, err := s.ByKey(t.Context(), keys[other.ID])
	require.NoError(t, err)
	require.Equal(t, other, key.Owner, "others stay as they are")
	_, err = s.TokenEmail(t.Context(), accounts.ForReset, others)
	require.NoError(t, err)
}

// The work of a token for who has no account leaves one row, and no token.
func TestPretendedTokensDoNotPileUp(t *testing.T) {
	c, path := newClock(), filepath.Join(t.TempDir(), "demo.db")
	s := open(t, path, c)
	for range 5 {
		require.NoError(t, s.PretendToken(t.Context(), accounts.ForReset))
	}
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	var n int
	require.NoError(t, db.QueryRow("SELECT count(*) FROM tokens").Scan(&n))
	require.Equal(t, 1, n)
	_, err = s.TokenEmail(t.Context(), accounts.ForReset, "")
	require.ErrorIs(t, err, accounts.ErrInvalidToken)
}
