package policies

import (
	"encoding/binary"
	"math"
	"math/bits"
	"net/netip"
	"strconv"

	"authguard/guard"
)

// Addresses of the attacks; the one of IPv4 is a network of its own.
var (
	oneAddress   = netip.MustParseAddr("192.0.2.1")
	ownerAddress = netip.MustParseAddr("198.51.100.1")
)

// A lane is one address of the guesser, or all of them if they do not matter.
type lane struct {
	number  int
	blocked int64      // until when it waits
	noNew   int64      // until when it admits no new identity
	known   identities // that wait or are ready, the soonest first
}

// An identity is an account, or an address, that is counted for itself.
type identity struct {
	number int
	ready  int64
	tried  int64
	used   bool // an attempt got through
}

const never = math.MaxInt64

// identities are a heap by ready.
type identities []*identity

func (h identities) Len() int           { return len(h) }
func (h identities) Less(i, j int) bool { return h[i].ready < h[j].ready }
func (h identities) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *identities) Push(x any)        { *h = append(*h, x.(*identity)) }
func (h *identities) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// attempt is that of an identity in a lane.
func (a *attack) attempt(l *lane, who *identity) guard.Attempt {
	account, addr := 0, oneAddress
	switch {
	case a.everyNew():
		account, addr = who.number, botAddress(who.number)
	case a.network > 0:
		account, addr = who.number, networkAddress(l.number)
	case a.manyAddresses:
		addr = botAddress(who.number)
	case a.manyAccounts:
		account = who.number
	}
	attempt := a.attemptAt(account, addr)
	attempt.Device = a.cookie
	return attempt
}

func (a *attack) attemptAt(account int, addr netip.Addr) guard.Attempt {
	return guard.Attempt{
		Action: a.policy.Action, Account: accountName(account), APIKey: "key " + strconv.Itoa(account),
		Tenant: "tenant", Parts: a.parts, IP: addr,
	}
}

func accountName(n int) string { return "account " + strconv.Itoa(n) }

// botAddress is in another IPv6 network than all others, however wide a rule
// looks (32 bits at most).
func botAddress(n int) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint32(b[:], 0x2000_0000+uint32(n))
	return netip.AddrFrom16(b)
}

// networkAddress is in a /64 of its own within one /48. The first of them are
// as far from one another as they can be.
func networkAddress(n int) netip.Addr {
	b := [16]byte{0: 0x20, 1: 0x01, 2: 0x0d, 3: 0xb8}
	binary.BigEndian.PutUint16(b[6:], bits.Reverse16(uint16(n)))
	return netip.AddrFrom16(b)
}
