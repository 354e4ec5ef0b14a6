package replay

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"authguard/guard"
)

// standIns are addresses and device cookies in place of the hashes of a recording,
// for a guard takes nothing else. They are as different as the hashes, and lie in one
// network if those did. Their number grows with that of addresses and devices in the
// recording, not with that of attempts.
type standIns struct {
	numbers  map[string]uint32 // of a hash, among those in the same network
	children map[string]uint32 // how many a network has
	cookies  map[string]string // by device
}

func newStandIns() *standIns {
	return &standIns{make(map[string]uint32), make(map[string]uint32), make(map[string]string)}
}

// number is the hash's own within its network.
func (s *standIns) number(network, hash string) uint32 {
	n, ok := s.numbers[hash]
	if !ok {
		n = s.children[network]
		s.numbers[hash] = n
		s.children[network]++
	}
	return n
}

// address is an IPv4 address for one of IPv4, and one of IPv6 for a network of /64.
func (s *standIns) address(r *guard.Record) netip.Addr {
	switch {
	case r.IP == "":
		return netip.Addr{}
	case len(r.Networks) != len(guard.RecordedPrefixes):
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], s.number("", r.IP))
		return netip.AddrFrom4(b)
	}
	var b [16]byte
	from, network := 0, "v6"
	for i, hash := range append(r.Networks[:len(r.Networks):len(r.Networks)], r.IP) {
		to := 64
		if i < len(guard.RecordedPrefixes) {
			to = guard.RecordedPrefixes[i]
		}
		n := uint64(s.number(network, hash)) << (64 - (to - from)) >> from
		binary.BigEndian.PutUint64(b[:8], binary.BigEndian.Uint64(b[:8])|n)
		from, network = to, hash
	}
	return netip.AddrFrom16(b)
}

// cookie makes the device one of its account, under g.
func (s *standIns) cookie(g *guard.Guard, r *guard.Record) (string, error) {
	if r.Device == "" {
		return "", nil
	}
	value, _, err := g.TrustDevice(accountOf(r.Account), s.cookies[r.Device]) // signed anew, so that it never expires
	if err == nil {
		s.cookies[r.Device] = value
	}
	return value, err
}

func accountOf(hash string) guard.Account { return guard.Account{ID: hash} }

// resolve knows every account: the recording's hashes are of accounts already.
func resolve(_ context.Context, hash string) (guard.Account, error) { return accountOf(hash), nil }

// checkPrefixes reports a rule by a network that no recording has.
func checkPrefixes(ps []guard.Policy) error {
	known := []string{"64"}
	for _, bits := range guard.RecordedPrefixes {
		known = append(known, strconv.Itoa(bits))
	}
	for _, p := range ps {
		for _, r := range p.Rules {
			for _, by := range []guard.By{r.By, r.Members} {
				if bits, ok := strings.CutPrefix(string(by), "ip/"); ok && !slices.Contains(known, bits) {
					return fmt.Errorf("replay: %s/%s counts by %s, and a recording knows only IPv6 prefixes of %s", p.Action, r.Name, by, strings.Join(known, ", "))
				}
			}
		}
	}
	return nil
}
