package accounts

import (
	"context"
	"database/sql"
	"strings"
	"time"
)

// maxDevices bounds, for one account, the devices that are listed, and apart from
// them those that are revoked one by one.
const maxDevices = 100

// A Device is a browser on which the owner of an account has logged in.
type Device struct {
	ID             string
	Added, Expires time.Time
}

// revokedDevices are the ids of an account's devices that were revoked, in one text.
const revokedDevices = `coalesce((SELECT group_concat(d.id) FROM devices d
	WHERE d.account = accounts.id AND d.generation = accounts.device_generation AND d.revoked), '')`

func splitIDs(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// Identify finds an account by its canonical address as ByEmail does, without its
// password, and takes as long where there is none: then it gives the zero Account.
func (s *Store) Identify(ctx context.Context, email string) (Account, error) {
	a := Account{Email: email}
	var revoked string
	err := s.db.QueryRowContext(ctx, `SELECT coalesce(accounts.id, 0), coalesce(generation, 0), coalesce(device_generation, 0), `+revokedDevices+`
		FROM (SELECT ? AS address) LEFT JOIN accounts ON email = address`, email).
		Scan(&a.ID, &a.Generation, &a.DeviceGeneration, &revoked)
	if err != nil || a.ID == 0 {
		return Account{}, err
	}
	a.RevokedDevices = splitIDs(revoked)
	return a, nil
}

// KeepDevice lists a device of a, as a was read: a new one, or one that is trusted
// for longer. Of more than a hundred, those used last stay listed.
func (s *Store) KeepDevice(ctx context.Context, a Account, id string, expires time.Time) error {
	now := s.now().Unix()
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "DELETE FROM devices WHERE expires <= ?", now); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO devices (id, account, generation, added, expires) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET expires = excluded.expires`, id, a.ID, a.DeviceGeneration, now, expires.Unix()); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM devices WHERE account = ?1 AND NOT revoked AND id NOT IN
			(SELECT id FROM devices WHERE account = ?1 AND NOT revoked ORDER BY expires DESC, id LIMIT ?2)`, a.ID, maxDevices)
		return err
	})
}

// Devices are those of the account that are trusted, the ones used last first.
func (s *Store) Devices(ctx context.Context, account int64) ([]Device, error) {
	rows, err := s.db.QueryContext(ctx, `SELECT d.id, d.added, d.expires FROM devices d JOIN accounts a ON a.id = d.account
		WHERE a.id = ? AND d.generation = a.device_generation AND NOT d.revoked AND d.expires > ? ORDER BY d.expires DESC, d.id`,
		account, s.now().Unix())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Device
	for rows.Next() {
		var d Device
		var added, expires int64
		if err := rows.Scan(&d.ID, &added, &expires); err != nil {
			return nil, err
		}
		d.Added, d.Expires = time.Unix(added, 0).UTC(), time.Unix(expires, 0).UTC()
		all = append(all, d)
	}
	return all, rows.Err()
}

// RevokeDevice makes one device of the account a stranger. An id that is not in the
// list changes nothing. After a hundred, all devices are revoked at once, so that
// what must be looked up with each attempt stays short.
func (s *Store) RevokeDevice(ctx context.Context, account int64, id string) error {
	return s.inTx(ctx, func(tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE devices SET revoked = 1 WHERE account = ? AND id = ?", account, id); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `UPDATE accounts SET device_generation = device_generation + 1 WHERE id = ? AND ? <
			(SELECT count(*) FROM devices d WHERE d.account = accounts.id AND d.generation = accounts.device_generation AND d.revoked)`,
			account, maxDevices)
		return err
	})
}

// RevokeDevices makes all devices of the account strangers.
func (s *Store) RevokeDevices(ctx context.Context, account int64) error {
	_, err := s.db.ExecContext(ctx, "UPDATE accounts SET device_generation = device_generation + 1 WHERE id = ?", account)
	return err
}
