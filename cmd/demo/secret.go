package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
)

// loadSecret reads the secret in path, after making one if there is no file. It
// warns of a file that others can read.
func loadSecret(path string, log *slog.Logger) ([]byte, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		if err = makeSecret(path); err != nil {
			return nil, fmt.Errorf("secret cannot be made, name another place with -secret-file: %w", err)
		}
	} else if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	return readSecret(path, log)
}

// loadPrevious reads the secret before the present one; "" has none.
func loadPrevious(path string, log *slog.Logger) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	return readSecret(path, log)
}

func readSecret(path string, log *slog.Logger) ([]byte, error) {
	secret, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("secret: %w", err)
	}
	secret = bytes.TrimSpace(secret)
	if len(secret) < 32 {
		return nil, fmt.Errorf("secret: %s has %d bytes, want at least 32", path, len(secret))
	}
	if info, err := os.Stat(path); err == nil && info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows" {
		log.Warn("other users have access to the secret: chmod 600 its file", "file", path, "mode", info.Mode().Perm())
	}
	return secret, nil
}

// makeSecret puts 32 random bytes into a new file that its owner alone reads.
// It appears whole or not at all, and of two processes that make it at once
// both read the first one's.
func makeSecret(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), ".secret-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	key := make([]byte, 32)
	rand.Read(key) // never fails: crypto/rand ends the program instead
	_, err = fmt.Fprintln(tmp, base64.StdEncoding.EncodeToString(key))
	if err := errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	if err := os.Link(tmp.Name(), path); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}
