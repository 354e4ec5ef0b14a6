package memstore

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ErrSaved is wrapped by the error of [Load] about what is no whole work of
// [Store.Save]: damaged, cut short, or of another version.
var ErrSaved = errors.New("memstore: what was saved cannot be loaded")

// Load makes a store with what [Store.Save] has written. Keys that are whole again
// by now are left out. If c's MaxBytes hold less than was saved, the least used go,
// as when the store is full, and count as evicted. If the clock has gone back since,
// everything is kept for as long as it had left.
//
// On an error there is no store at all; [New] makes an empty one.
func Load(c Config, r io.Reader) (*Store, error) {
	in, sum := bufio.NewReader(r), sha256.New()
	body := io.TeeReader(in, sum)
	var header [headerBytes]byte
	if err := readFull(body, header[:]); err != nil {
		return nil, err
	}
	if !bytes.HasPrefix(header[:], []byte(magic)) {
		return nil, fmt.Errorf("%w: it does not begin with %q", ErrSaved, magic)
	}
	number := func(i int) uint64 { return binary.LittleEndian.Uint64(header[len(magic)+8*i:]) }
	s := New(c)
	s.key = hashKey{number(0), number(1)}
	now := s.now()
	back := max(0, int64(number(2))-now) / 1_000_000 // seconds that the clock went back
	s.expect(number(3))
	var buf [recordBytes + 1<<16]byte
	for {
		record := buf[:2]
		if err := readFull(body, record); err != nil {
			return nil, err
		}
		size := binary.LittleEndian.Uint16(record)
		if size == 0 {
			break
		}
		record = buf[:recordBytes+int(size)]
		if err := readFull(body, record[2:]); err != nil {
			return nil, err
		}
		if err := s.restore(record, now, back); err != nil {
			return nil, err
		}
	}
	want, end := sum.Sum(nil), make([]byte, sha256.Size)
	if err := readFull(in, end); err != nil {
		return nil, err
	}
	if !bytes.Equal(end, want) {
		return nil, fmt.Errorf("%w: its checksum is wrong", ErrSaved)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: more follows its end", ErrSaved)
	}
	return s, nil
}

func readFull(r io.Reader, p []byte) error {
	switch _, err := io.ReadFull(r, p); {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w: it is cut short", ErrSaved)
	case err != nil:
		return fmt.Errorf("memstore: %w", err)
	}
	return nil
}

// expect makes room for so many keys, as far as there may be. They were saved nearly
// in the order of their hashes, and would crowd at one end of tables that grow.
func (s *Store) expect(keys uint64) {
	n := uint64(len(s.shards))
	for i := range s.shards {
		sh := &s.shards[i]
		if each := min(keys/n*5/4, uint64(sh.maxSlots())); each > firstSlots {
			sh.resize(int(each))
		}
	}
}

// restore puts a saved key into its place.
func (s *Store) restore(record []byte, now, back int64) error {
	h := hash{binary.LittleEndian.Uint64(record[2:]), binary.LittleEndian.Uint32(record[10:])}
	expires := earlier(binary.LittleEndian.Uint32(record[14:]), back)
	denies := earlier(binary.LittleEndian.Uint32(record[18:]), back)
	mark, state := record[22], record[recordBytes:]
	sh := &s.shards[s.shardOf(h)]
	switch _, known := sh.find(h); {
	case known:
		return fmt.Errorf("%w: it has a key twice", ErrSaved)
	case mark < 1 || mark > denying:
		return fmt.Errorf("%w: it has a key of mark %d, want 1 to %d", ErrSaved, mark, denying)
	case passed(expires, now):
		return nil
	case !sh.reserve(h, len(state), now, []item{{hash: h}}):
		sh.evicted++
		return nil
	}
	i, _ := sh.find(h)
	sh.store(i, state)
	sh.slots[i].expires, sh.slots[i].denies = expires, denies
	sh.setMark(i, mark)
	return nil
}

// earlier is a second by a clock that has gone back.
func earlier(second uint32, back int64) uint32 {
	if second == never {
		return never
	}
	return uint32(max(0, int64(second)-back))
}
