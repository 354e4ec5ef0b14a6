package accounts

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite", in pure Go
)

// Errors that callers tell apart.
var (
	ErrNotFound     = errors.New("accounts: not found")
	ErrInvalidToken = errors.New("accounts: token is unknown, used or expired")
	ErrTooManyKeys  = errors.New("accounts: the account has as many API keys as it may")
	ErrFactorOn     = errors.New("accounts: the account has a second factor")
	ErrUsed         = errors.New("accounts: code is unknown or used")
)

// A Store is an open database. It is safe for concurrent use.
type Store struct {
	db     *sql.DB
	now    func() time.Time
	nobody []byte // the hash of a token that nobody has
}

// Open opens the database at path, making it, readable for its owner alone, if
// there is none, and brings its schema up to date. Expiry goes by now.
func Open(ctx context.Context, path string, now func() time.Time) (*Store, error) {
	if err := create(path); err != nil {
		return nil, fmt.Errorf("accounts: %w", err)
	}
	db, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, fmt.Errorf("accounts: open %s: %w", path, err)
	}
	// SQLite has one writer at a time; more connections only wait in line.
	db.SetMaxOpenConns(4)
	if err := migrate(ctx, db); err != nil {
		db.Close()
		return nil, fmt.Errorf("accounts: open %s: %w", path, err)
	}
	return &Store{db: db, now: now, nobody: sum(secret())}, nil
}

// Close closes the database.
func (s *Store) Close() error { return s.db.Close() }

// Ping reports whether the database answers.
func (s *Store) Ping(ctx context.Context) error {
	var version int // is read from the file, unlike a constant
	return s.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version)
}

// create makes an empty file, so that its mode is right from the start: SQLite
// would make it readable for all, and gives its journals the mode of the file.
func create(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

func dsn(path string) string {
	q := url.Values{
		"_busy_timeout": {"5000"},
		"_foreign_keys": {"on"},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"NORMAL"},
		// A transaction that reads first and writes later would fail as busy
		// when another wrote in between, without waiting; so take the lock first.
		"_txlock": {"immediate"},
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: q.Encode()}).String()
}

// inTx runs f in a transaction.
func (s *Store) inTx(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after Commit
	if err := f(tx); err != nil {
		return err
	}
	return tx.Commit()
}
