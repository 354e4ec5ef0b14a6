package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"authguard/limiter/memstore"
)

// openMemory opens the limits that the process before has left in file, or new
// ones, and leaves them there at the end. Else every deploy would be an amnesty.
func openMemory(file string, log *slog.Logger) (*opened, error) {
	store, err := loadCounters(file, log)
	if err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	return &opened{store, func() {
		if err := saveCounters(file, store); err != nil {
			log.Error("the limits' counts are not saved: they begin anew at the next start", "err", err)
		}
	}}, nil
}

// loadCounters takes the counts over from file. It goes away, for they change from
// now on: what is no longer true must not come back after a crash. A damaged file is
// set aside, since nothing in it can be believed.
func loadCounters(file string, log *slog.Logger) (*memstore.Store, error) {
	in, err := os.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return memstore.New(memstore.Config{}), nil
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	store, err := memstore.Load(memstore.Config{}, in)
	switch {
	case errors.Is(err, memstore.ErrSaved):
		aside := file + ".damaged"
		log.Error("the limits' counts begin anew", "err", err, "set_aside", aside)
		return memstore.New(memstore.Config{}), os.Rename(file, aside)
	case err != nil:
		return nil, err
	}
	return store, os.Remove(file)
}

// saveCounters writes a file that its owner alone reads. It appears whole or not at all.
func saveCounters(file string, store *memstore.Store) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".limits-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // does nothing once it was renamed
	out := bufio.NewWriter(tmp)
	err = store.Save(out)
	if err := errors.Join(err, out.Flush(), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
