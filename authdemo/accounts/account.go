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
}

const columns = "id, email, password_hash, generation"

// ByEmail finds an account by its canonical address, or gives ErrNotFound.
func (s *Store) ByEmail(ctx context.Context, email string) (Account, error) {
	return scan(s.db.QueryRowContext(ctx, "SELECT "+columns+" FROM accounts WHERE email = ?", email), ErrNotFound)
}

// ByID finds an account, or gives ErrNotFound.
func (s *Store) ByID(ctx context.Context, id int64) (Account, error) {
	return scan(s.db.QueryRowContext(ctx, "SELECT "+columns+" FROM accounts WHERE id = ?", id), ErrNotFound)
}

// Restore makes the account of email as if it were new: with this password,
// without API keys, second factor, reset links and sessions. If there is none, it makes one, and
// no mail confirms it.
func (s *Store) Restore(ctx context.Context, email, passwordHash string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		a, err := scan(tx.QueryRowContext(ctx, insert+`(email) DO UPDATE SET password_hash = excluded.password_hash, generation = generation + 1
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
// reset links and all sessions of the account end with it.
func (s *Store) Reset(ctx context.Context, token, passwordHash string) (Account, error) {
	var a Account
	err := s.inTx(ctx, func(tx *sql.Tx) error {
		email, err := s.take(ctx, tx, ForReset, token)
		if err != nil {
			return err
		}
		a, err = scan(tx.QueryRowContext(ctx, `UPDATE accounts SET password_hash = ?, generation = generation + 1
			WHERE email = ? RETURNING `+columns, passwordHash, email), ErrInvalidToken)
		return err
	})
	return a, err
}

// ChangePassword sets the password of a, as it was read, and returns it in its
// new generation. Reset links on their way and all sessions end. It gives
// ErrNotFound if the password was changed meanwhile.
func (s *Store) ChangePassword(ctx context.Context, a Account, passwordHash string) (Account, error) {
	err := s.inTx(ctx, func(tx *sql.Tx) (err error) {
		a, err = scan(tx.QueryRowContext(ctx, `UPDATE accounts SET password_hash = ?, generation = generation + 1
			WHERE id = ? AND generation = ? RETURNING `+columns, passwordHash, a.ID, a.Generation), ErrNotFound)
		if err != nil {
			return err
		}
		return dropTokens(ctx, tx, ForReset, a.Email)
	})
	return a, err
}

// scan reads one account; none is the given error.
func scan(row *sql.Row, none error) (Account, error) {
	var a Account
	err := row.Scan(&a.ID, &a.Email, &a.PasswordHash, &a.Generation)
	if errors.Is(err, sql.ErrNoRows) {
		return Account{}, none
	}
	return a, err
}
