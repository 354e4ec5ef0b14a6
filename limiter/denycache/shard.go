package denycache

import (
	"hash/maphash"
	"sync"
	"time"

	"authguard/limiter"
)

// hash stands for a key, whose text is not kept.
type hash [2]uint64

// shard has a part of the records under a lock of its own.
type shard struct {
	mu      sync.Mutex
	records map[hash]*record
	drops   uint64 // of keys of this shard, known or not
	local   uint64 // denials that were answered here
}

const (
	shards = 64

	// sample is how many records are looked at to find one that makes room.
	sample = 8
)

func (s *Store) hash(key string) hash {
	return hash{maphash.String(s.seeds[0], key), maphash.String(s.seeds[1], key)}
}

func (s *Store) shard(h hash) *shard { return &s.shards[h[0]%shards] }

// recall fills in d if c's key is known to be denied.
func (s *Store) recall(c *limiter.Charge, now int64, d *limiter.Decision) bool {
	h := s.hash(c.Key)
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	r := sh.records[h]
	if r == nil || r.limit != c.Limit || !r.stands(now, s.settle) {
		return false
	}
	sh.local++
	*d = r.tell(now)
	return true
}

// note takes down that the store denies c, in an answer that was asked for at
// sent, when the shard had seen so many drops. What was dropped meanwhile may have
// been free already when the answer arrived.
func (s *Store) note(c *limiter.Charge, sent, received int64, drops uint64) {
	h := s.hash(c.Key)
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.drops != drops {
		return
	}
	r := sh.records[h]
	switch {
	case r == nil:
		if len(sh.records) >= s.maxKeys/shards && !sh.makeRoom(received, s.settle) {
			return
		}
		r = new(record)
		sh.records[h] = r
		r.since = received
	case r.limit != c.Limit || end(&r.said) != end(&c.Decision):
		r.since = received
	case received < r.received: // an answer that was overtaken
		return
	}
	r.limit, r.sent, r.received, r.said = c.Limit, sent, received, c.Decision
}

// makeRoom drops a record that is of little use, the longest unheard of among a
// few. A record in use is renewed again and again: it goes for no newcomer, so that
// a flood of keys, each denied once, leaves it where it is.
func (sh *shard) makeRoom(now int64, settle time.Duration) bool {
	var (
		victim hash
		oldest *record
		seen   int
	)
	for h, r := range sh.records { // from anywhere, each time
		if !r.inUse(now, settle) && (oldest == nil || r.received < oldest.received) {
			victim, oldest = h, r
		}
		if seen++; seen == sample {
			break
		}
	}
	if oldest == nil {
		return false
	}
	delete(sh.records, victim)
	return true
}

// admits takes down that the store admits c: what was known of its key is past.
// Other numbers are another question, until a charge changes what they find.
func (s *Store) admits(c *limiter.Charge) {
	h := s.hash(c.Key)
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if r := sh.records[h]; r != nil && (c.Taken || r.limit == c.Limit) {
		delete(sh.records, h)
	}
}

// drops is how many drops the shard of key has seen.
func (s *Store) drops(key string) uint64 {
	sh := s.shard(s.hash(key))
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.drops
}

// drop forgets a key, and all answers about it that are on their way.
func (s *Store) drop(h hash) {
	sh := s.shard(h)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	delete(sh.records, h)
	sh.drops++
}

func (s *Store) dropAll() {
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		clear(sh.records)
		sh.drops++
		sh.mu.Unlock()
	}
}
