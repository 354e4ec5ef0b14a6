package limiter

import (
	"context"
	"time"
)

// A Noter is a Store that also keeps lists of keys, for operators who want to know
// whom it refuses: what a store counts under are hashes, and looking through all of
// them for those that deny would stop a server. Lists are apart from limits: nothing
// is decided by them, and a note that is lost costs a line of a listing.
//
// It is safe for any number of goroutines.
type Noter interface {
	// Note puts notes on their lists, in the place of those of the same key, whose
	// later Until stays. Where a list then has more than [MaxNotes], the note in
	// its middle goes, in the order of Until: so a flood displaces what has come
	// since the list was half full and is followed by half a list of others, and
	// neither what was there before nor what lasts longest.
	Note(ctx context.Context, notes []Note) error

	// Noted are the notes of lists that have not ended, those that last longest
	// first within each list. It looks at nothing but the lists.
	Noted(ctx context.Context, lists []string) ([]Note, error)

	// Strike takes keys off a list.
	Strike(ctx context.Context, list string, keys []string) error
}

// MaxNotes is how many notes a list holds.
const MaxNotes = 1_000

// A Note is one key of a list.
type Note struct {
	List  string // of letters, digits, - and _
	Key   string
	Label []byte // what the caller knows it by; a store cannot tell what is in it
	Until time.Time

	// At is when that came about, by the store's clock ([Decision.Time]), for Note:
	// what has ended by then goes. If it is zero, the store looks at its clock.
	At time.Time
}

// NoterOf is the Noter that store is, or that the store which it wraps is: wrappers
// have a method Unwrap() Store. It is nil if there is none.
func NoterOf(store Store) Noter {
	for store != nil {
		if n, ok := store.(Noter); ok {
			return n
		}
		wrapper, ok := store.(interface{ Unwrap() Store })
		if !ok {
			return nil
		}
		store = wrapper.Unwrap()
	}
	return nil
}
