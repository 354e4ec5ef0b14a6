package accounts

import (
	"context"
	"errors"
	"time"
)

// noticeEvery is how long an owner who was told of something is not told of the like.
const noticeEvery = 24 * time.Hour

// TakeNotice reports whether the account's owner may be told of something now, and
// notes that it was: once a day and kind, whichever process asks.
func (s *Store) TakeNotice(ctx context.Context, account int64, kind string) (bool, error) {
	now := s.now()
	errTold := errors.New("accounts: told already")
	err := changed(errTold)(s.db.ExecContext(ctx, `INSERT INTO notices (account, kind, sent) VALUES (?, ?, ?)
		ON CONFLICT (account, kind) DO UPDATE SET sent = excluded.sent WHERE sent <= ?`,
		account, kind, now.Unix(), now.Add(-noticeEvery).Unix()))
	if errors.Is(err, errTold) {
		return false, nil
	}
	return err == nil, err
}
