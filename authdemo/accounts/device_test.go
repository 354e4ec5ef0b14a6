package accounts_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/authdemo/accounts"
)

func ids(t *testing.T, s *accounts.Store, account int64) (all []string) {
	t.Helper()
	devices, err := s.Devices(t.Context(), account)
	require.NoError(t, err)
	for _, d := range devices {
		all = append(all, d.ID)
	}
	return all
}

func TestDevices(t *testing.T) {
	s, c := newStore(t)
	a, other := withAccount(t, s, "a@example.com"), withAccount(t, s, "b@example.com")
	keep := func(id string, d time.Duration) {
		t.Helper()
		require.NoError(t, s.KeepDevice(t.Context(), a, id, c.now().Add(d)))
	}
	keep("x", time.Hour)
	keep("y", 2*time.Hour)
	keep("x", 3*time.Hour)
	require.Equal(t, []string{"x", "y"}, ids(t, s, a.ID), "used last first")
	devices, err := s.Devices(t.Context(), a.ID)
	require.NoError(t, err)
	require.Equal(t, accounts.Device{ID: "x", Added: c.now().UTC(), Expires: c.now().Add(3 * time.Hour).UTC()}, devices[0])

	require.NoError(t, s.RevokeDevice(t.Context(), other.ID, "x"))
	require.Empty(t, ids(t, s, other.ID))
	require.NoError(t, s.RevokeDevice(t.Context(), a.ID, "x"))
	require.Equal(t, []string{"y"}, ids(t, s, a.ID))
	for name, read := range map[string]func() (accounts.Account, error){
		"by e-mail":  func() (accounts.Account, error) { return s.ByEmail(t.Context(), a.Email) },
		"by id":      func() (accounts.Account, error) { return s.ByID(t.Context(), a.ID) },
		"identified": func() (accounts.Account, error) { return s.Identify(t.Context(), a.Email) },
	} {
		b, err := read()
		require.NoError(t, err, name)
		require.Equal(t, a.ID, b.ID, name)
		require.Equal(t, a.DeviceGeneration, b.DeviceGeneration, name)
		require.Equal(t, []string{"x"}, b.RevokedDevices, name)
	}
	none, err := s.Identify(t.Context(), "nobody@example.com")
	require.NoError(t, err)
	require.Zero(t, none)

	require.NoError(t, s.RevokeDevices(t.Context(), a.ID))
	require.Empty(t, ids(t, s, a.ID))
	keep("late", time.Hour) // a login that was on its way, in the generation before
	require.Empty(t, ids(t, s, a.ID))
	b, err := s.ByEmail(t.Context(), a.Email)
	require.NoError(t, err)
	require.Equal(t, a.DeviceGeneration+1, b.DeviceGeneration)
	require.Equal(t, a.Generation, b.Generation, "sessions go on")
	require.Empty(t, b.RevokedDevices)
	require.Error(t, s.KeepDevice(t.Context(), accounts.Account{ID: 99}, "z", c.now().Add(time.Hour)), "of nobody")
}

// What every attempt has to look up stays short, whatever an owner does.
func TestDevicesAreBounded(t *testing.T) {
	s, c := newStore(t)
	a := withAccount(t, s, "a@example.com")
	for i := range 102 {
		require.NoError(t, s.KeepDevice(t.Context(), a, fmt.Sprintf("device%03d", i), c.now().Add(time.Hour+time.Duration(i)*time.Second)))
	}
	all := ids(t, s, a.ID)
	require.Len(t, all, 100)
	require.Equal(t, "device101", all[0])
	require.Equal(t, "device002", all[99])
	for _, id := range all {
		require.NoError(t, s.RevokeDevice(t.Context(), a.ID, id))
	}
	b, err := s.ByEmail(t.Context(), a.Email)
	require.NoError(t, err)
	require.Len(t, b.RevokedDevices, 100)
	require.NoError(t, s.KeepDevice(t.Context(), b, "last", c.now().Add(time.Hour)))
	require.NoError(t, s.KeepDevice(t.Context(), b, "straw", c.now().Add(time.Hour)))
	require.NoError(t, s.RevokeDevice(t.Context(), a.ID, "last"))
	b, err = s.ByEmail(t.Context(), a.Email)
	require.NoError(t, err)
	require.Empty(t, b.RevokedDevices)
	require.Equal(t, a.DeviceGeneration+1, b.DeviceGeneration, "all are revoked instead")
}

// A database from before devices goes on, and its accounts can have some.
func TestAccountsFromBeforeDevices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.db")
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	for v := 1; v <= 2; v++ {
		script, err := os.ReadFile(fmt.Sprintf("schema/%d.sql", v))
		require.NoError(t, err)
		_, err = db.Exec(string(script))
		require.NoError(t, err)
	}
	_, err = db.Exec(`INSERT INTO accounts (id, email, password_hash, generation, created) VALUES (7, 'a@example.com', 'hash', 5, 0); PRAGMA user_version = 2`)
	require.NoError(t, err)
	require.NoError(t, db.Close())

	c := newClock()
	s := open(t, path, c)
	a, err := s.ByEmail(t.Context(), "a@example.com")
	require.NoError(t, err)
	require.Equal(t, accounts.Account{ID: 7, Email: "a@example.com", PasswordHash: "hash", Generation: 5, DeviceGeneration: 1}, a)
	require.NoError(t, s.KeepDevice(t.Context(), a, "x", c.now().Add(time.Hour)))
	require.Equal(t, []string{"x"}, ids(t, s, 7))
}
