package memory

import (
	"errors"
	"hash/maphash"
	"sync"
	"time"
)

// A table is the floor: sharded, open-addressing, of 16-byte states, with no law,
// no bound and no sweep. It finds the key under a lock and counts.
type table struct {
	seed   maphash.Seed
	shards [64]shard
	limit  int64
	clock  bool // read the clock, as a law must
}

type shard struct {
	mu    sync.Mutex
	slots []slot
	_     [64]byte // the next lock is on another cache line
}

type slot struct {
	hash        uint64
	count, last int64 // the state
}

var errTableFull = errors.New("the table is full")

var started = time.Now()

func newTable(keys int, limit int64, clock bool) *table {
	t := &table{seed: maphash.MakeSeed(), limit: limit, clock: clock}
	for i := range t.shards {
		t.shards[i].slots = make([]slot, keys/len(t.shards)*3/2+32)
	}
	return t
}

func (t *table) take(key string) (bool, error) {
	h := maphash.String(t.seed, key) | 1
	s := &t.shards[h>>58]
	s.mu.Lock()
	defer s.mu.Unlock()
	var now int64
	if t.clock {
		now = int64(time.Since(started))
	}
	for i, n := int(h<<6>>32*uint64(len(s.slots))>>32), 0; n < len(s.slots); n++ {
		c := &s.slots[i]
		if c.hash == 0 {
			c.hash = h
		}
		if c.hash == h {
			if c.count >= t.limit {
				return false, nil
			}
			c.count++
			c.last = now
			return true, nil
		}
		if i++; i == len(s.slots) {
			i = 0
		}
	}
	return false, errTableFull
}
