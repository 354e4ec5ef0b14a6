package redisstore

import (
	"encoding/binary"
	"fmt"

	"authguard/limiter"
)

// A charge on its way to the script: law (1 byte), flags (1), count of numbers
// (1), cost (5), at (8), member (8), then the numbers (8 each), all big-endian.
// flags are the advisory group, and 128 for a charge that may not be taken.
const barred = 128

// maxGroups bounds the advisory groups of a batch, which share a byte with flags.
const maxGroups = 63

func appendCharge(dst []byte, law byte, c *limiter.Charge, flags byte, numbers []byte) []byte {
	dst = append(dst, law, flags, byte(len(numbers)/8), 0)
	dst = binary.BigEndian.AppendUint32(dst, uint32(c.Cost))
	dst = binary.BigEndian.AppendUint64(dst, uint64(c.Decision.At))
	var member [limiter.MemberBytes]byte
	copy(member[:], c.Member)
	dst = append(dst, member[:]...)
	return append(dst, numbers...)
}

// A decision on its way back: flags (1), wait, remaining, reset, delay (8 each).
const (
	isTaken   = 1
	isAllowed = 2
	isLocked  = 4
	isAlien   = 8

	replyHead  = 8
	replyBytes = 33
)

// readReply fills in what the script said of charges.
func readReply(reply string, charges []limiter.Charge, limits []int64) error {
	if len(reply) != replyHead+replyBytes*len(charges) {
		return fmt.Errorf("redisstore: the script answered %d bytes for %d charges", len(reply), len(charges))
	}
	b := []byte(reply)
	at := int64(binary.BigEndian.Uint64(b))
	b = b[replyHead:]
	for i := range charges {
		c := &charges[i]
		flags := b[0]
		if flags&isAlien != 0 {
			return &limiter.ChargeError{Index: i, Err: limiter.ErrState}
		}
		c.Taken = flags&isTaken != 0
		c.Decision = limiter.Decision{
			Allowed:    flags&isAllowed != 0,
			Locked:     flags&isLocked != 0,
			Limit:      limits[i],
			RetryAfter: micros(b[1:]),
			Remaining:  int64(binary.BigEndian.Uint64(b[9:])),
			ResetAfter: micros(b[17:]),
			Delay:      micros(b[25:]),
			At:         at,
		}
		b = b[replyBytes:]
	}
	return nil
}
