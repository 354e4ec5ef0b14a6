package memstore

import "encoding/binary"

// place is where a slot's state lies: in the slot, in a block of the shard's
// pool, or on the heap. Bigger places have bigger numbers.
type place uint8

const (
	inSlot  place = iota
	inBlock       // up to 40 bytes: the exact window of five
	inLarge
	anywhere // for evict
)

const blockBytes = 40

func placeFor(size int) place {
	switch {
	case size <= inlineBytes:
		return inSlot
	case size <= blockBytes:
		return inBlock
	}
	return inLarge
}

// stateAt is the state of slot i.
func (s *shard) stateAt(i int) []byte {
	c := &s.slots[i]
	switch c.place {
	case inBlock:
		return s.blocks.at(c.index())[:c.size]
	case inLarge:
		return s.large.states[c.index()][:c.size]
	}
	return c.inline[:c.size]
}

// fits reports that a state of size bytes goes where slot i has its state.
func (s *shard) fits(i, size int) bool {
	return size <= blockBytes && placeFor(size) == s.slots[i].place
}

// store puts a state into slot i, whose place has room for it.
func (s *shard) store(i int, state []byte) {
	c := &s.slots[i]
	switch c.place {
	case inBlock:
		if len(state) <= inlineBytes {
			s.blocks.free(c.index())
			s.setPlace(c, inSlot)
			copy(c.inline[:], state)
			break
		}
		copy(s.blocks.at(c.index()), state)
	case inLarge:
		s.large.set(c.index(), state)
	default:
		copy(c.inline[:], state)
	}
	c.size = uint16(len(state))
}

// moveTo gives slot i a bigger place, with what it holds.
func (s *shard) moveTo(i int, to place, size int) {
	c := &s.slots[i]
	var index int
	if to == inBlock {
		index = s.blocks.alloc()
		copy(s.blocks.at(index), s.stateAt(i))
	} else {
		index = s.large.alloc(s.stateAt(i), size)
	}
	s.release(i)
	s.setPlace(c, to)
	binary.NativeEndian.PutUint64(c.inline[:], uint64(index))
}

func (s *shard) setPlace(c *slot, to place) {
	s.marks[c.place][c.mark]--
	c.place = to
	s.marks[c.place][c.mark]++
}

// release frees the place of slot i.
func (s *shard) release(i int) {
	c := &s.slots[i]
	switch c.place {
	case inBlock:
		s.blocks.free(c.index())
	case inLarge:
		s.large.free(c.index())
	}
}

func (c *slot) index() int { return int(binary.NativeEndian.Uint64(c.inline[:])) }

// blocks is a pool of 40-byte blocks in one piece of memory. Free ones are a
// list through their first bytes.
type blocks struct {
	data  []byte
	first int // of the free list, plus one
	used  int
}

func (b *blocks) at(i int) []byte { return b.data[i*blockBytes : (i+1)*blockBytes] }

func (b *blocks) bytes() int { return len(b.data) }

// room reports whether there is a free block, in a pool of at most limit, and
// grows the pool if it may.
func (b *blocks) room(limit int) bool {
	if b.first != 0 {
		return true
	}
	have := len(b.data) / blockBytes
	n := min(limit, max(firstSlots, have+have/4))
	if n <= have {
		return false
	}
	data := make([]byte, n*blockBytes)
	copy(data, b.data)
	b.data = data
	for i := n - 1; i >= have; i-- {
		b.push(i)
	}
	return true
}

func (b *blocks) alloc() int {
	i := b.first - 1
	b.first = int(binary.NativeEndian.Uint64(b.at(i)))
	b.used++
	return i
}

func (b *blocks) free(i int) {
	b.push(i)
	if b.used--; b.used == 0 && len(b.data) > keepSlots*blockBytes {
		*b = blocks{}
	}
}

func (b *blocks) push(i int) {
	binary.NativeEndian.PutUint64(b.at(i), uint64(b.first))
	b.first = i + 1
}

// large holds the few states that fit no block, each on its own.
type large struct {
	states [][]byte
	unused []int
	bytes  int
}

func (l *large) alloc(state []byte, size int) int {
	b := append(make([]byte, 0, roundUp(size)), state...)
	l.bytes += cap(b)
	if n := len(l.unused); n > 0 {
		i := l.unused[n-1]
		l.unused = l.unused[:n-1]
		l.states[i] = b
		return i
	}
	l.states = append(l.states, b)
	return len(l.states) - 1
}

func (l *large) set(i int, state []byte) {
	l.bytes -= cap(l.states[i])
	if roundUp(len(state)) != cap(l.states[i]) {
		l.states[i] = make([]byte, 0, roundUp(len(state)))
	}
	l.states[i] = append(l.states[i][:0], state...)
	l.bytes += cap(l.states[i])
}

func (l *large) free(i int) {
	l.bytes -= cap(l.states[i])
	l.states[i] = nil
	l.unused = append(l.unused, i)
}

// roundUp leaves a large state room to grow by an eighth.
func roundUp(size int) int {
	step := max(64, (size/8)&^7)
	return (size + step - 1) / step * step
}
