package accounts

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Sessions keeps sessions for github.com/alexedwards/scs: it is an
// scs.CtxStore. The manager must hash the tokens that it stores.
type Sessions struct{ *Store }

// FindCtx returns the data of a live session.
func (s Sessions) FindCtx(ctx context.Context, token string) (data []byte, found bool, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT data FROM sessions WHERE token = ? AND expires > ?",
		token, s.now().Unix()).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, false, nil
	}
	return data, err == nil, err
}

// CommitCtx stores a session, and drops those that have expired.
func (s Sessions) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	// The manager dates by the system's clock, and this store by its own.
	now := s.now()
	expires := now.Add(time.Until(expiry))
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM sessions WHERE expires <= ?", now.Unix()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO sessions (token, data, expires) VALUES (?, ?, ?)
			ON CONFLICT (token) DO UPDATE SET data = excluded.data, expires = excluded.expires`,
			token, data, expires.Unix())
		return err
	})
}

// DeleteCtx ends a session.
func (s Sessions) DeleteCtx(ctx context.Context, token string) error {
	_, err := s.db.ExecContext(ctx, "DELETE FROM sessions WHERE token = ?", token)
	return err
}

// Find, Commit and Delete are the same without a context: scs.Store has them,
// and the manager prefers the others.

func (s Sessions) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

func (s Sessions) Commit(token string, data []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expiry)
}

func (s Sessions) Delete(token string) error {
	return s.DeleteCtx(context.Background(), token)
}
