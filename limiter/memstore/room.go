package memstore

// How a shard's budget is shared out. The parts are separate so that a flood of
// new keys cannot eat the room in which known keys grow.
func (s *shard) maxSlots() int { return s.budget / 2 / slotBytes }
func (s *shard) maxBlocks() int {
	return s.budget * 3 / 8 / blockBytes
}
func (s *shard) maxLarge() int { return s.budget / 8 }

const (
	firstSlots = 8
	keepSlots  = 64 // a table up to this size is kept when it is empty

	evictWalk = 256

	// A write adds one key at most, and the sweep looks at two slots for each, so a
	// table does not fill up with keys that are whole again.
	writesPerSweep = 8
	slotsPerSweep  = 2 * writesPerSweep
)

// reserve gives h a slot, with room for a state of size bytes, and reports
// whether there was any. It evicts keys if it must, but none of the batch.
func (s *shard) reserve(h hash, size int, now int64, batch []item) bool {
	if _, ok := s.find(h); !ok {
		if !s.room(now, batch) {
			return false
		}
		i, _ := s.find(h)
		s.slots[i] = slot{a: h.a, b: h.b, denies: never, mark: denying} // not to be evicted before it is written
		s.marks[inSlot][denying]++
		s.used++
	}
	if s.enlarge(h, size, now, batch) {
		return true
	}
	s.unreserve(h)
	return false
}

// unreserve drops the slot of h if it was only reserved.
func (s *shard) unreserve(h hash) {
	if i, ok := s.find(h); ok && s.slots[i].size == 0 {
		s.remove(i)
	}
}

// enlarge makes room for size bytes where h has its state.
func (s *shard) enlarge(h hash, size int, now int64, batch []item) bool {
	i, _ := s.find(h)
	want := placeFor(size)
	switch want {
	case inBlock:
		if s.slots[i].place < inBlock && !s.blocks.room(s.maxBlocks()) && !s.evict(now, inBlock, batch) {
			return false
		}
	case inLarge:
		for s.large.bytes+s.growth(h, size) > s.maxLarge() {
			if !s.evict(now, inLarge, batch) {
				return false
			}
		}
	}
	i, _ = s.find(h) // evictions move slots
	if want > s.slots[i].place {
		s.moveTo(i, want, size)
	}
	return true
}

// growth is how much more a large state of h will take.
func (s *shard) growth(h hash, size int) int {
	if i, _ := s.find(h); s.slots[i].place == inLarge {
		return roundUp(size) - cap(s.large.states[s.slots[i].index()])
	}
	return roundUp(size)
}

// room makes sure of a free slot for a new key, with a table no fuller than 7/8.
func (s *shard) room(now int64, batch []item) bool {
	if s.used+1 <= len(s.slots)*7/8 {
		return true
	}
	if n := min(s.maxSlots(), max(firstSlots, len(s.slots)+len(s.slots)/4)); n > len(s.slots) {
		s.resize(n)
		return true
	}
	return s.evict(now, anywhere, batch)
}

// evict drops one key whose state is in place: the first that is whole again,
// or the least used of the next evictWalk slots, which in a flood of new keys is
// one of the flood's. It never drops a key that is denying, and walks on while it
// has met no other. It reports false if there is none to drop.
func (s *shard) evict(now int64, in place, batch []item) bool {
	least := s.leastMark(in)
	best := -1
	for n := range s.slots {
		i := s.hand + n
		if i >= len(s.slots) {
			i -= len(s.slots)
		}
		c := &s.slots[i]
		if c.mark == 0 || in != anywhere && c.place != in || held(batch, c.hash()) {
			continue
		}
		whole := c.whole(now)
		if whole || !c.mustStay(now) && (best < 0 || c.mark < s.slots[best].mark) {
			best = i
		}
		if whole || best == i && c.mark == least || best >= 0 && n >= evictWalk {
			break
		}
	}
	if best < 0 {
		return false
	}
	if !s.slots[best].whole(now) {
		s.evicted++
	}
	s.hand = best
	s.remove(best)
	if s.hand >= len(s.slots) {
		s.hand = 0
	}
	return true
}

// leastMark is the mark of the least used keys in a place.
func (s *shard) leastMark(in place) uint8 {
	for mark := uint8(1); mark <= denying; mark++ {
		for p := range anywhere {
			if (in == anywhere || in == p) && s.marks[p][mark] > 0 {
				return mark
			}
		}
	}
	return denying
}

// sweepInTurn sweeps after some writes: slots side by side cost less than each for
// itself.
func (s *shard) sweepInTurn(now int64) {
	if s.due++; s.due >= writesPerSweep {
		s.due = 0
		s.sweep(now, slotsPerSweep)
	}
}

// sweep looks at the next n slots and drops keys that are whole again.
func (s *shard) sweep(now int64, n int) {
	for ; n > 0 && s.used > 0; n-- {
		c := &s.slots[s.hand]
		if c.mark != 0 && c.whole(now) {
			s.remove(s.hand) // another slot may stand here now
			continue
		}
		if s.hand = s.next(s.hand); s.hand == 0 && len(s.slots) > 4*s.used+firstSlots {
			s.resize(2*s.used + firstSlots)
		}
	}
}
