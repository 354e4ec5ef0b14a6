package memcachestore

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
)

// Flags of a value tell what is ours.
const (
	flagState  = 'a'<<24 | 'g'<<16 | 1 // a head and the state of a law
	flagPoison = 'a'<<24 | 'g'<<16 | 2 // nothing: something was there that was not ours
)

// headBytes come before a state: when it was decided and until when it is needed,
// both in microseconds since 1970.
const headBytes = 16

// An entry is what a key holds.
type entry struct {
	item    *memcache.Item // as it was read; nil where there is none
	decided int64          // the instant of the newest charge, by the clock that decides
	until   int64          // by the clock of the process
	state   []byte
	alien   bool // what is there is not ours
}

func read(item *memcache.Item) entry {
	switch {
	case item == nil:
		return entry{}
	case item.Flags != flagState || len(item.Value) < headBytes:
		return entry{item: item, alien: true}
	}
	return entry{
		item:    item,
		decided: int64(binary.BigEndian.Uint64(item.Value)),
		until:   int64(binary.BigEndian.Uint64(item.Value[8:])),
		state:   item.Value[headBytes:],
	}
}

// next is the item that takes the place of e. It is needed for life from now on;
// and no shorter than e is, because in a rolling deploy other numbers may need it.
func (e *entry) next(key string, state []byte, decided int64, life time.Duration, now time.Time) *memcache.Item {
	until := max(e.until, now.Add(life).UnixMicro())
	item := e.replacement(key)
	item.Flags = flagState
	item.Value = binary.BigEndian.AppendUint64(make([]byte, 0, headBytes+len(state)), uint64(decided))
	item.Value = binary.BigEndian.AppendUint64(item.Value, uint64(until))
	item.Value = append(item.Value, state...)
	item.Expiration = expiration(until, now)
	return item
}

// nothing is the item that takes the place of e and is gone at once. Unlike a
// delete it is not stored if somebody has written meanwhile.
func (e *entry) nothing(key string) *memcache.Item {
	item := e.replacement(key)
	item.Expiration = -1
	return item
}

// poison is the item that takes the place of what is not ours. The key is an error
// until it expires.
func (e *entry) poison(key string) *memcache.Item {
	item := e.replacement(key)
	item.Flags = flagPoison
	item.Expiration = int32(poisonLife / time.Second)
	return item
}

func (e *entry) replacement(key string) *memcache.Item {
	item := &memcache.Item{Key: key}
	if e.item != nil {
		item.CasID = e.item.CasID
	}
	return item
}

const (
	poisonLife = time.Hour // as long as redisstore leaves what is not its own

	// tick is added to each expiry. Memcached counts whole seconds by a clock that
	// is up to one behind (a key with 1 second was gone after 0.5), or a little
	// more when it is busy.
	tick = 2

	maxRelative = 30 * 24 * 60 * 60 // seconds; what is more is taken for a date
	dateSlack   = 60 * 60           // seconds by which the server's calendar may be ahead
)

// expiration is until as Memcached takes it: in seconds from now, or from 30 days
// on as a date.
func expiration(until int64, now time.Time) int32 {
	left := max(0, until-now.UnixMicro())
	seconds := (left+999_999)/1_000_000 + tick
	if seconds <= maxRelative {
		return int32(seconds)
	}
	date := now.Unix() + seconds + dateSlack
	if date > math.MaxInt32 { // the client's dates end in January 2038
		return maxRelative
	}
	return int32(date)
}
