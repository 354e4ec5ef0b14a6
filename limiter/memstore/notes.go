package memstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"authguard/limiter"
)

var _ limiter.Noter = (*Store)(nil)

// maxLists bounds the lists of a store, and so, with [limiter.MaxNotes], the memory
// of notes: it is beside Config.MaxBytes, and a megabyte where ten lists are full.
const maxLists = 1_024

// notes are the lists, each in the order of Until.
type notes struct {
	mu    sync.Mutex
	lists map[string][]limiter.Note
}

// Note implements [limiter.Noter].
func (s *Store) Note(ctx context.Context, notes []limiter.Note) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	if s.notes.lists == nil {
		s.notes.lists = map[string][]limiter.Note{}
	}
	for _, n := range notes {
		now := n.At
		if n.At = (time.Time{}); now.IsZero() {
			now = time.UnixMicro(s.now())
		}
		list, known := s.notes.lists[n.List]
		if !known && len(s.notes.lists) >= maxLists {
			return fmt.Errorf("memstore: more than %d lists of notes", maxLists)
		}
		list = slices.DeleteFunc(list, func(old limiter.Note) bool {
			if old.Key == n.Key && old.Until.After(n.Until) {
				n.Until = old.Until
			}
			return old.Key == n.Key || !old.Until.After(now)
		})
		at, _ := slices.BinarySearchFunc(list, n.Until, func(old limiter.Note, until time.Time) int {
			return cmp.Or(old.Until.Compare(until), -1) // behind its equals
		})
		list = slices.Insert(list, at, n)
		if len(list) > limiter.MaxNotes {
			list = slices.Delete(list, limiter.MaxNotes/2, limiter.MaxNotes/2+1)
		}
		s.notes.lists[n.List] = list
	}
	return nil
}

// Noted implements [limiter.Noter].
func (s *Store) Noted(ctx context.Context, lists []string) ([]limiter.Note, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	now := time.UnixMicro(s.now())
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	var all []limiter.Note
	for _, name := range lists {
		for _, n := range slices.Backward(s.notes.lists[name]) {
			if n.Until.After(now) {
				all = append(all, n)
			}
		}
	}
	return all, nil
}

// Strike implements [limiter.Noter].
func (s *Store) Strike(ctx context.Context, list string, keys []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.notes.mu.Lock()
	defer s.notes.mu.Unlock()
	left := slices.DeleteFunc(s.notes.lists[list], func(n limiter.Note) bool { return slices.Contains(keys, n.Key) })
	if len(left) == 0 {
		delete(s.notes.lists, list)
	} else {
		s.notes.lists[list] = left
	}
	return nil
}
