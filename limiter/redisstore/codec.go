package redisstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"authguard/limiter"
)

// What the script is asked to do with a call.
type mode byte

const (
	take mode = iota + 1
	peek
	refund
)

// A call on its way to the script: mode (1 byte), count of charges (4), and the
// charges: law (1), flags (1), count of numbers (1), cost (5), at (8), member (8),
// then the numbers (8 each), all big-endian. flags are the advisory group, and 128
// for a charge that may not be taken.
const (
	callHead = 5
	barred   = 128
)

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

// A script's reply has for each of its calls whether it could be decided (1 byte),
// the length of the rest (4), and the rest: what the script said, or an error.
const answerHead = 5

// cutAnswer takes the answer of the next call off a script's reply.
func cutAnswer(reply string) (answer, rest string, err error) {
	if len(reply) < answerHead {
		return "", "", errShort
	}
	ok, n := reply[0] == 1, int(binary.BigEndian.Uint32([]byte(reply[1:answerHead])))
	if reply = reply[answerHead:]; len(reply) < n {
		return "", "", errShort
	}
	if !ok {
		return "", reply[n:], fmt.Errorf("redisstore: script: %s", reply[:n])
	}
	return reply[:n], reply[n:], nil
}

var errShort = errors.New("redisstore: the script's reply is too short")

// A take or peek is answered by the instant (8), and for each charge flags (1),
// wait, remaining, reset, delay (8 each). A refund is answered by flags (1 each).
const (
	isTaken   = 1
	isAllowed = 2
	isLocked  = 4
	isAlien   = 8

	decisionsHead = 8
	decisionBytes = 33
)

// readDecisions fills in what the script said of those charges that p has.
func readDecisions(p *part, charges []limiter.Charge) error {
	if len(p.answer) != decisionsHead+decisionBytes*len(p.items) {
		return fmt.Errorf("redisstore: the script answered %d bytes for %d charges", len(p.answer), len(p.items))
	}
	b := []byte(p.answer)
	at := int64(binary.BigEndian.Uint64(b))
	b = b[decisionsHead:]
	for _, item := range p.items {
		c, flags := &charges[item.index], b[0]
		if flags&isAlien != 0 {
			return &limiter.ChargeError{Index: item.index, Err: limiter.ErrState}
		}
		if p.mode == take {
			c.Taken = flags&isTaken != 0
		}
		c.Decision = limiter.Decision{}
		if !item.barred {
			c.Decision = limiter.Decision{
				Allowed:    flags&isAllowed != 0,
				Locked:     flags&isLocked != 0,
				Limit:      item.limit,
				RetryAfter: micros(b[1:]),
				Remaining:  int64(binary.BigEndian.Uint64(b[9:])),
				ResetAfter: micros(b[17:]),
				Delay:      micros(b[25:]),
				At:         at,
			}
		}
		b = b[decisionBytes:]
	}
	return nil
}

// readRefunds looks for charges of p whose keys hold nothing of ours.
func readRefunds(p *part) error {
	for n, flags := range []byte(p.answer) {
		if flags&isAlien != 0 && n < len(p.items) {
			return &limiter.ChargeError{Index: p.items[n].index, Err: limiter.ErrState}
		}
	}
	return nil
}

func micros(b []byte) time.Duration {
	return time.Duration(binary.BigEndian.Uint64(b)) * time.Microsecond
}
