package accounts

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// FactorLifetime is how long a second factor that was begun can be confirmed.
const FactorLifetime = 10 * time.Minute

// A Factor is the second factor of an account.
type Factor struct {
	Account int64
	AppKey  []byte // sealed
	Since   time.Time
	Left    int // recovery codes that were not used
}

// Factor finds the second factor that is on, or gives ErrNotFound.
func (s *Store) Factor(ctx context.Context, account int64) (Factor, error) {
	f := Factor{Account: account}
	var since int64
	err := s.db.QueryRowContext(ctx, `SELECT app_key, since, (SELECT count(*) FROM recovery_codes WHERE account = f.account)
		FROM second_factors f WHERE account = ? AND since IS NOT NULL`, account).Scan(&f.AppKey, &since, &f.Left)
	if errors.Is(err, sql.ErrNoRows) {
		return Factor{}, ErrNotFound
	}
	f.Since = time.Unix(since, 0)
	return f, err
}

// BeginFactor keeps the key of an app until a code confirms it, in place of one
// that was begun before. The error is ErrFactorOn if a second factor is on.
func (s *Store) BeginFactor(ctx context.Context, account int64, appKey []byte) error {
	return changed(ErrFactorOn)(s.db.ExecContext(ctx, `INSERT INTO second_factors (account, app_key, made) VALUES (?, ?, ?)
		ON CONFLICT (account) DO UPDATE SET app_key = excluded.app_key, made = excluded.made WHERE since IS NULL`,
		account, appKey, s.now().Unix()))
}

// BegunFactor finds the second factor that was begun within FactorLifetime and
// not confirmed, or gives ErrNotFound.
func (s *Store) BegunFactor(ctx context.Context, account int64) (Factor, error) {
	f := Factor{Account: account}
	err := s.db.QueryRowContext(ctx, "SELECT app_key FROM second_factors WHERE account = ? AND since IS NULL AND made > ?",
		account, s.now().Add(-FactorLifetime).Unix()).Scan(&f.AppKey)
	if errors.Is(err, sql.ErrNoRows) {
		return Factor{}, ErrNotFound
	}
	return f, err
}

// ConfirmFactor turns on the second factor that was begun, by the code of step,
// with the sums of its recovery codes. It gives ErrNotFound if another one was
// begun, or it was confirmed, meanwhile.
func (s *Store) ConfirmFactor(ctx context.Context, f Factor, step int64, sums [][]byte) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		now := s.now()
		err := changed(ErrNotFound)(tx.ExecContext(ctx, `UPDATE second_factors SET since = ?, last_step = ?
			WHERE account = ? AND since IS NULL AND app_key = ? AND made > ?`,
			now.Unix(), step, f.Account, f.AppKey, now.Add(-FactorLifetime).Unix()))
		if err != nil {
			return err
		}
		for _, sum := range sums {
			if _, err := tx.ExecContext(ctx, "INSERT INTO recovery_codes (account, hash) VALUES (?, ?)", f.Account, sum); err != nil {
				return err
			}
		}
		return nil
	})
}

// ResealFactor replaces the sealed key of f, and nothing if it was replaced meanwhile.
func (s *Store) ResealFactor(ctx context.Context, f Factor, appKey []byte) error {
	_, err := s.db.ExecContext(ctx, "UPDATE second_factors SET app_key = ? WHERE account = ? AND app_key = ?", appKey, f.Account, f.AppKey)
	return err
}

// UseStep takes the time step of a code that was right. It gives ErrUsed if that
// step, or a later one, was taken before.
func (s *Store) UseStep(ctx context.Context, f Factor, step int64) error {
	return changed(ErrUsed)(s.db.ExecContext(ctx, `UPDATE second_factors SET last_step = ?
		WHERE account = ? AND since IS NOT NULL AND app_key = ? AND last_step < ?`, step, f.Account, f.AppKey, step))
}

// UseRecoveryCode takes the recovery code with this sum. It gives ErrUsed if it
// was taken before, or is none of the account's.
func (s *Store) UseRecoveryCode(ctx context.Context, account int64, sum []byte) error {
	return changed(ErrUsed)(s.db.ExecContext(ctx, "DELETE FROM recovery_codes WHERE account = ? AND hash = ?", account, sum))
}

// DropFactor turns off the second factor of the account, if it has one.
func (s *Store) DropFactor(ctx context.Context, account int64) error {
	_, err := s.db.ExecContext(ctx, dropFactor, account)
	return err
}

const dropFactor = "DELETE FROM second_factors WHERE account = ?" // and its recovery codes with it

// changed turns the result of a statement that changes one row, or none, into
// an error: none is the given one.
func changed(none error) func(sql.Result, error) error {
	return func(res sql.Result, err error) error {
		if err != nil {
			return err
		}
		n, err := res.RowsAffected()
		if err == nil && n == 0 {
			err = none
		}
		return err
	}
}
