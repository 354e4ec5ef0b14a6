package memstore

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
)

// What is saved is, all numbers little-endian,
//
//	magic, hash key (16), now (8, microseconds since 1970), about how many keys (8)
//	a record for each key: its state's size (2), hash (12), expires (4),
//	    denies (4), mark (1), state
//	a size of 0, and the SHA-256 of all before
//
// Its version is part of the magic.
const (
	magic       = "authguard memstore 1\n"
	headerBytes = len(magic) + 16 + 8 + 8
	recordBytes = 2 + 12 + 4 + 4 + 1
)

// Save writes what the store holds, so that [Load] makes a store that denies whom
// this one denies: for the end of a process whose successor shall not begin
// with an amnesty. No key is in it as text. The key of the hashes is, so the file
// is for its owner alone (0600).
//
// Others may go on meanwhile. The store is saved shard by shard: of a batch that is
// charged at the same time some charges may be saved and others not.
func (s *Store) Save(w io.Writer) error {
	sum := sha256.New()
	w = io.MultiWriter(w, sum)
	buf := append(make([]byte, 0, headerBytes), magic...)
	buf = binary.LittleEndian.AppendUint64(buf, s.key[0])
	buf = binary.LittleEndian.AppendUint64(buf, s.key[1])
	buf = binary.LittleEndian.AppendUint64(buf, uint64(s.now()))
	buf = binary.LittleEndian.AppendUint64(buf, uint64(s.Stats().Keys))
	for i := range s.shards {
		if _, err := w.Write(buf); err != nil {
			return fmt.Errorf("memstore: %w", err)
		}
		buf = s.shards[i].save(buf[:0], s.now)
	}
	if _, err := w.Write(binary.LittleEndian.AppendUint16(buf, 0)); err != nil {
		return fmt.Errorf("memstore: %w", err)
	}
	if _, err := w.Write(sum.Sum(nil)); err != nil {
		return fmt.Errorf("memstore: %w", err)
	}
	return nil
}

// save appends the records of keys that still count.
func (s *shard) save(dst []byte, clock func() int64) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock()
	for i := range s.slots {
		c := &s.slots[i]
		if c.mark == 0 || c.whole(now) {
			continue
		}
		dst = binary.LittleEndian.AppendUint16(dst, c.size)
		dst = binary.LittleEndian.AppendUint64(dst, c.a)
		dst = binary.LittleEndian.AppendUint32(dst, c.b)
		dst = binary.LittleEndian.AppendUint32(dst, c.expires)
		dst = binary.LittleEndian.AppendUint32(dst, c.denies)
		dst = append(dst, c.mark)
		dst = append(dst, s.stateAt(i)...)
	}
	return dst
}
