package accounts

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"errors"
	"time"
)

// Purpose is what a mailed token is good for.
type Purpose string

const (
	ForConfirm Purpose = "confirm" // proves the address of a sign-up
	ForReset   Purpose = "reset"   // sets a new password
)

// TokenLifetime is how long a mailed token is good. Mails per account are
// limited per day, so a link that is refused must not have died before that.
const TokenLifetime = 24 * time.Hour

// NewToken makes a token for the account, or the sign-up, of email. Earlier
// ones stay good: otherwise anybody could void the link that the owner just got.
func (s *Store) NewToken(ctx context.Context, purpose Purpose, email string) (string, error) {
	token := secret()
	if err := s.keep(ctx, sum(token), purpose, email); err != nil {
		return "", err
	}
	return token, nil
}

// PretendToken does the work of NewToken for nobody: it writes one row over and over,
// whose token nobody has. That work runs beside the answers to others, and if only
// accounts caused it, their time would tell which there are.
func (s *Store) PretendToken(ctx context.Context, purpose Purpose) error {
	return s.keep(ctx, s.nobody, purpose, "")
}

func (s *Store) keep(ctx context.Context, hash []byte, purpose Purpose, email string) error {
	now := s.now()
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM tokens WHERE expires <= ?", now.Unix()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO tokens (hash, purpose, email, expires) VALUES (?, ?, ?, ?)",
			hash, purpose, email, now.Add(TokenLifetime).Unix())
		return err
	})
}

// TokenEmail tells whose token it is, without using it up, or gives
// ErrInvalidToken.
func (s *Store) TokenEmail(ctx context.Context, purpose Purpose, token string) (string, error) {
	return one(s.db.QueryRowContext(ctx, "SELECT email FROM tokens WHERE hash = ? AND purpose = ? AND expires > ?",
		sum(token), purpose, s.now().Unix()))
}

// take uses a token up, and with it all others of the same purpose and address.
func (s *Store) take(ctx context.Context, tx *sql.Tx, purpose Purpose, token string) (email string, err error) {
	email, err = one(tx.QueryRowContext(ctx, "DELETE FROM tokens WHERE hash = ? AND purpose = ? AND expires > ? RETURNING email",
		sum(token), purpose, s.now().Unix()))
	if err != nil {
		return "", err
	}
	return email, dropTokens(ctx, tx, purpose, email)
}

func dropTokens(ctx context.Context, tx *sql.Tx, purpose Purpose, email string) error {
	_, err := tx.ExecContext(ctx, "DELETE FROM tokens WHERE email = ? AND purpose = ?", email, purpose)
	return err
}

func one(row *sql.Row) (email string, err error) {
	err = row.Scan(&email)
	if errors.Is(err, sql.ErrNoRows) {
		return "", ErrInvalidToken
	}
	return email, err
}

// secret is 256 random bits as text.
func secret() string {
	b := make([]byte, 32)
	rand.Read(b) // never fails: crypto/rand ends the program instead
	return base64.RawURLEncoding.EncodeToString(b)
}

// sum is what is stored of a secret. It needs no salt and no stretching, since
// nobody can try 2^256 secrets.
func sum(secret string) []byte {
	h := sha256.Sum256([]byte(secret))
	return h[:]
}
