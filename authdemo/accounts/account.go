package accounts

import (
	"context"
	"database/sql"
	"errors"
)

// An Account is somebody whose address is confirmed.
type Account struct {
	ID           int64
	Email        string // canonical; where mail goes
	PasswordHash string

	// Generation grows whenever the password changes. A session that was
	// opened in an earlier one is over.
	Generation int64

	// DeviceGeneration grows whenever all devices are revoked, as by a new
	// password, and RevokedDevices are those of it that were revoked one by one.
	DeviceGeneration int64
	RevokedDevices   []string
}

const columns = "accounts.id, email, password_hash, generation, device_generation, " + revokedDevices

// renewed is what a new password sets.
const renewed = "generation = generation + 1, device_generation = device_generation + 1"

// ByEmail finds an account by its canonical address, or gives ErrNotFound.
func (s *Store) ByEmail(ctx context.Context, email string) (Account, error) {
	return scan(s.db.QueryRowContext(ctx, "SELECT "+columns+" FROM accounts WHERE email = ?", email), ErrNotFound)
}

// ByID finds an account, or gives ErrNotFound.
func (s *Store) ByID(ctx context.Context, id int64) (Account, error) {
	return scan(s.db.QueryRowContext(ctx, "SELECT "+columns+" FROM accounts WHERE id = ?", id), ErrNotFound)
}

// Restore makes the account of email as if it were new: with this password,
// without API keys, second factor, reset links, sessions and devices. If there is none, it
// makes one, and
// no mail confirms it.
func (s *Store) Restore(ctx context.Context, email, passwordHash string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		a, err := scan(tx.QueryRowContext(ctx, insert+`(email) DO UPDATE SET password_hash = excluded.password_hash, `+renewed+`
			RETURNING `+columns, email, passwordHash, s.now().Unix()), ErrNotFound)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "DELETE FROM api_keys WHERE account = ?", a.ID); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, dropFactor, a.ID); err != nil {
			return err
		}
		return dropTokens(ctx, tx, ForReset, email)
	})
}

const insert = `INSERT INTO accounts (email, password_hash, created) VALUES (?, ?, ?) ON CONFLICT `

// Confirm uses up the token of a sign-up and makes its account, with this
// password. It gives ErrInvalidToken also when the address has an account by
// now: the link must not change that account's password.
func (s *Store) Confirm(ctx context.Context, token, passwordHash string) (Account, error) {
	var a Account
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		email, err := s.take(ctx, tx, ForConfirm, token)
		if err != nil {
			return err
		}
		a, err = scan(tx.QueryRowContext(ctx, insert+"DO NOTHING RETURNING "+columns, email, passwordHash, s.now().Unix()), ErrInvalidToken)
		return err
	})
	return a, err
}

// Reset uses up the token of a reset link and sets the password. All other
// reset links, all sessions and all devices of the account end with it.
func (s *Store) Reset(ctx context.Context, token, passwordHash string) (Account, error) {
	var a Account
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		email, err := s.take(ctx, tx, ForReset, token)
		if err != nil {
			return err
		}
		a, err = scan(tx.QueryRowContext(ctx, `UPDATE accounts SET password_hash = ?, `+renewed+`
			WHERE email = ? RETURNING `+columns, passwordHash, email), ErrInvalidToken)
		return err
	})
	return a, err
}

// ChangePassword sets the password of a, as it was read, and returns it in its
// new generation. Reset links on their way, all sessions and all devices end. It gives
// ErrNotFound if the password was changed meanwhile.
func (s *Store) ChangePassword(ctx context.Context, a Account, passwordHash string) (Account, error) {
	err := s.inTx(ctx, func(tx *sql.Tx) (err error) {
		a, err = scan(tx.QueryRowContext(ctx, `UPDATE accounts SET password_hash = ?, `+renewed+`
			WHERE id = ? AND generation = ? RETURNING `+columns, passwordHash, a.ID, a.Generation), ErrNotFound)
		if err != nil {
			return err
		}
		return dropTokens(ctx, tx, ForReset, a.Email)
	})
	return a, err
}

// scan reads one account, and what stands before its columns; none is the given error.
func scan(row *sql.Row, none error, before ...any) (Account, error) {
	var a Account
	var revoked string
	err := row.Scan(append(before, &a.ID, &a.Email, &a.PasswordHash, &a.Generation, &a.DeviceGeneration, &revoked)...)
	if errors.Is(err, sql.ErrNoRows) {
		return Account{}, none
	}
	a.RevokedDevices = splitIDs(revoked)
	return a, err
}
