package denycache

import (
	"context"
	"math"
	"time"
)

// A Channel tells of keys that may admit again, whichever process sets them free.
// A redisstore.Store is one.
type Channel interface {
	// Listen tells released each key that denied and that a refund or Forget has
	// set free, from its first call of alive on. It calls alive about twice a
	// second, if all that happened in the store until age ago has been told. It
	// makes one call at a time, returns when something may have been missed or ctx
	// ends, and says why.
	Listen(ctx context.Context, released func(key string), alive func(age time.Duration)) error
}

const (
	// silence of the channel for so long, and nothing is answered here.
	silence = 2 * time.Second

	// pause is how long to wait for another try when the channel has broken.
	pause = 250 * time.Millisecond

	// never is an instant before all others.
	never = math.MinInt64
)

// Run listens to the channel until ctx ends, and to a new one whenever it breaks.
// Without it everything is asked of the store. Only one Run may be under way.
func (s *Store) Run(ctx context.Context) {
	for ctx.Err() == nil {
		err := s.listen(ctx)
		if ctx.Err() == nil && s.broken != nil {
			s.broken(err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

func (s *Store) listen(ctx context.Context) error {
	defer s.silentAt.Store(never)
	first := true
	return s.channel.Listen(ctx, func(key string) { s.drop(s.hash(key)) }, func(age time.Duration) {
		if first {
			s.dropAll() // what became free while nobody listened
			first = false
		}
		s.silentAt.Store(s.now() + int64(silence-age))
	})
}

// live reports that all that became free until lately has been told.
func (s *Store) live(now int64) bool { return now < s.silentAt.Load() }
