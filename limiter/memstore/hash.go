package memstore

import (
	"crypto/rand"
	"encoding/binary"
	"unsafe"

	"github.com/dchest/siphash"
)

// hash stands for a key: 96 bits of its SipHash, under a key of the store's own,
// so that nobody can make two keys alike, or many that fall in one place. Unlike
// those of package maphash it can be saved: its key goes along.
type hash struct {
	a uint64
	b uint32
}

type hashKey [2]uint64

func newHashKey() (k hashKey) {
	var random [16]byte
	rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	k[0], k[1] = binary.LittleEndian.Uint64(random[:]), binary.LittleEndian.Uint64(random[8:])
	return k
}

// hash is what stands for a key.
func (s *Store) hash(key string) hash {
	text := unsafe.Slice(unsafe.StringData(key), len(key)) // only read
	a, b := siphash.Hash128(s.key[0], s.key[1], text)
	return hash{a, uint32(b)}
}

// shardOf is the number of the shard that h lies in, by other bits than its place
// in there.
func (s *Store) shardOf(h hash) int { return int(h.b >> s.shift) }
