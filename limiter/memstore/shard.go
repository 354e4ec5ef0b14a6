package memstore

import (
	"math/bits"
	"strings"
	"sync"
	"time"

	"authguard/limiter"
)

// A shard is a flat open-addressing table with linear probing. A slot's home
// is its hash's place in the range of the table, so the table grows to any
// size, and slots stand nearly in the order of their hashes.
type shard struct {
	mu      sync.Mutex // and what every call needs, side by side
	used    int
	hand    int // where the sweep is
	due     int // writes since the last sweep
	slots   []slot
	scratch []byte
	aside   limiter.Decision // of an ask that nobody is told of
	blocks  blocks
	large   large
	marks   [anywhere][denying + 1]int32 // slots by place and mark
	budget  int                          // bytes
	evicted uint64
	full    uint64
	_       [64]byte // the next shard's lock is on another cache line
}

// slot is one key: 40 bytes.
type slot struct {
	a       uint64            // the hash
	b       uint32            //
	expires uint32            // Unix seconds, from when on the key may be forgotten
	inline  [inlineBytes]byte // the state, or where it is
	denies  uint32            // Unix seconds, until when the key denies; only if its mark is denying
	size    uint16            // bytes of the state
	place   place             // where the state is
	mark    uint8             // 0: the slot is free; otherwise how used the key is
}

func (c *slot) hash() hash { return hash{c.a, c.b} }

// whole reports that nothing of the key counts any more.
func (c *slot) whole(now int64) bool { return passed(c.expires, now) && c.size > 0 }

// mustStay reports that the key denies, and dropping it would set somebody free.
func (c *slot) mustStay(now int64) bool { return c.mark == denying && !passed(c.denies, now) }

const (
	inlineBytes = 16
	slotBytes   = 40
	sliceBytes  = 24 // of the header of a large state

	denying = 9 // the mark of a key that has nothing left; the others are 1 to 8
	never   = 1<<32 - 1
)

// home is where a hash's probing begins.
func (s *shard) home(h hash) int {
	hi, _ := bits.Mul64(h.a, uint64(len(s.slots)))
	return int(hi)
}

func (s *shard) next(i int) int {
	if i++; i == len(s.slots) {
		return 0
	}
	return i
}

// find gives the slot of h, or the free slot where it would go.
func (s *shard) find(h hash) (int, bool) {
	if len(s.slots) == 0 {
		return 0, false
	}
	i := s.home(h)
	for s.slots[i].mark != 0 {
		if c := &s.slots[i]; c.a == h.a && c.b == h.b {
			return i, true
		}
		i = s.next(i)
	}
	return i, false
}

// write stores a state for which there is room, and what the sweep and the eviction
// need to know of it: d is what limit says of it.
func (s *shard) write(i int, state []byte, limit limiter.Limit, d *limiter.Decision, now int64) {
	s.store(i, state)
	slot, reset := &s.slots[i], d.ResetAfter
	// Never sooner than another limit's numbers asked for: in a rolling deploy
	// two sets of them share a key.
	slot.expires = max(slot.expires, seconds(now, reset))
	s.setMark(i, markOf(d))
	if slot.mark == denying {
		slot.denies = seconds(now, s.untilNext(i, limit, reset, now))
	}
}

func (s *shard) setMark(i int, mark uint8) {
	if slot := &s.slots[i]; mark != slot.mark {
		s.marks[slot.place][slot.mark]--
		slot.mark = mark
		s.marks[slot.place][slot.mark]++
	}
}

// untilNext is how long a key with nothing left denies one more unit. Its state
// lives on for longer, but then no longer needs to be kept at all costs.
func (s *shard) untilNext(i int, limit limiter.Limit, reset time.Duration, now int64) time.Duration {
	d := &s.aside
	_, err := limit.Take(d, nil, s.stateAt(i), now, limiter.Ask{Cost: 1, Member: anyMember})
	if err != nil || d.Locked || d.Allowed { // allowed: to whoever blocks the key
		return reset
	}
	return d.RetryAfter
}

// anyMember is a member that nobody is known by.
var anyMember = strings.Repeat("\xff", limiter.MemberBytes)

// markOf is how used a key is: 1 to 8 for its eighths, or denying.
func markOf(d *limiter.Decision) uint8 {
	if d.Remaining <= 0 {
		return denying
	}
	return uint8(1 + 8*(d.Limit-d.Remaining)/(d.Limit+1))
}

// seconds is the second in which now + d lies or, if that is beyond what a slot
// holds, never.
func seconds(now int64, d time.Duration) uint32 {
	return uint32(min(never, (now+d.Microseconds()+999_999)/1_000_000))
}

func passed(second uint32, now int64) bool {
	return second != never && int64(second)*1_000_000 <= now
}

// refund takes back what stands of c.
func (s *shard) refund(h hash, c *limiter.Charge, now int64) error {
	i, ok := s.find(h)
	if !ok {
		return nil // forgotten meanwhile
	}
	state, err := c.Limit.Refund(s.scratch[:0], s.stateAt(i), now, c.Decision.At, c.Ask)
	if err != nil {
		return err
	}
	s.keepScratch(state)
	if len(state) == 0 {
		s.remove(i)
		return nil
	}
	left := &s.aside
	if _, err = c.Limit.Take(left, nil, state, now, limiter.Ask{Member: c.Member}); err != nil {
		return err
	}
	s.write(i, state, c.Limit, left, now)
	return nil
}

// remove frees a slot, and moves those behind it up, so that no probing ends
// before its key.
func (s *shard) remove(i int) {
	s.release(i)
	s.marks[s.slots[i].place][s.slots[i].mark]--
	s.used--
	for j := s.next(i); s.slots[j].mark != 0; j = s.next(j) {
		if home := s.home(s.slots[j].hash()); between(home, i, j) {
			s.slots[i] = s.slots[j]
			i = j
		}
	}
	s.slots[i] = slot{}
	if s.used == 0 && len(s.slots) > keepSlots {
		s.slots, s.blocks, s.large, s.hand = nil, blocks{}, large{}, 0
	}
}

// between reports that a key at home home, which stands at j, may move to i:
// that i is on its way from home to j, around the end.
func between(home, i, j int) bool {
	if home <= j {
		return home <= i && i < j
	}
	return home <= i || i < j
}

// resize moves all slots to a table of n.
func (s *shard) resize(n int) {
	old := s.slots
	s.slots, s.hand = make([]slot, n), 0
	for i := range old {
		if old[i].mark != 0 {
			at, _ := s.find(old[i].hash())
			s.slots[at] = old[i]
		}
	}
}

// keepScratch keeps the longer memory for the next call, within reason.
func (s *shard) keepScratch(b []byte) {
	if cap(b) > cap(s.scratch) && cap(b) <= 16<<10 {
		s.scratch = b[:0]
	}
}

func (s *shard) bytes() int {
	return len(s.slots)*slotBytes + s.blocks.bytes() + s.large.bytes + sliceBytes*cap(s.large.states)
}
