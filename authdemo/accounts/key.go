package accounts

import (
	"context"
	"errors"
	"fmt"
)

// MaxKeys is how many API keys an account may have.
const MaxKeys = 5

// keyPrefix lets people and secret scanners recognise a leaked key.
const keyPrefix = "ag_"

// A Tier is what an API key's owner pays for, which decides its limits.
type Tier string

const (
	Free Tier = "free" // what a key has that was made before there were tiers
	Pro  Tier = "pro"
)

// A Key is an API key as far as it is stored.
type Key struct {
	ID    int64
	Tier  Tier
	Owner Account
}

// NewKey makes an API key for the account. It is returned this once and never
// again. The error is ErrTooManyKeys at MaxKeys, of all tiers together.
func (s *Store) NewKey(ctx context.Context, account int64, tier Tier) (string, error) {
	key := keyPrefix + secret()
	// One statement counts and inserts, so that parallel requests cannot make more.
	res, err := s.db.ExecContext(ctx, `INSERT INTO api_keys (hash, account, tier, created)
		SELECT ?, ?, ?, ? WHERE (SELECT count(*) FROM api_keys WHERE account = ?) < ?`,
		sum(key), account, tier, s.now().Unix(), account, MaxKeys)
	if err != nil {
		return "", err
	}
	if n, err := res.RowsAffected(); err != nil {
		return "", err
	} else if n == 0 {
		return "", ErrTooManyKeys
	}
	return key, nil
}

// ByKey finds whose API key it is, and of which tier, or gives ErrNotFound.
func (s *Store) ByKey(ctx context.Context, key string) (Key, error) {
	var k Key
	row := s.db.QueryRowContext(ctx, "SELECT k.id, k.tier, "+columns+" FROM api_keys k JOIN accounts ON accounts.id = k.account WHERE k.hash = ?", sum(key))
	owner, err := scan(row, ErrNotFound, &k.ID, &k.Tier)
	if err != nil && !errors.Is(err, ErrNotFound) {
		err = fmt.Errorf("accounts: API key: %w", err)
	}
	if err != nil {
		return Key{}, err
	}
	k.Owner = owner
	return k, nil
}
