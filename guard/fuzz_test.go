package guard

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two subjects are hashed from the same bytes if, and only if, they are the same
// kind of the same parts: nobody finds a name that is counted as another's.
func FuzzKeys(f *testing.F) {
	f.Add(byte('a'), "namebob", []byte{4, 3}, byte('a'), "nameboc", []byte{4, 3})
	f.Add(byte('a'), "namebob", []byte{4, 3}, byte('a'), "namebob", []byte{3, 4})
	f.Add(byte('p'), "planfree", []byte{4, 4}, byte('p'), "planfree", []byte{8})
	f.Add(byte('t'), "x", []byte{1}, byte('k'), "x", []byte{1})
	f.Add(byte('a'), "", []byte{0, 0}, byte('a'), "", []byte{0})
	f.Add(byte('a'), "a\x01a", []byte{1, 2}, byte('a'), "a\x01a", []byte{3})
	f.Add(byte('b'), string(make([]byte, 300)), []byte{200, 100}, byte('b'), string(make([]byte, 300)), []byte{100, 200})
	h, err := newHasher(make([]byte, minSecret), "test")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, kind1 byte, text1 string, lengths1 []byte, kind2 byte, text2 string, lengths2 []byte) {
		parts1, parts2 := cut(text1, lengths1), cut(text2, lengths2)
		bytes1, hash1 := h.image(kind1, parts1)
		bytes2, hash2 := h.image(kind2, parts2)
		same := kind1 == kind2 && slices.Equal(parts1, parts2)
		require.Equal(t, same, bytes.Equal(bytes1, bytes2), "%q and %q", parts1, parts2)
		require.Equal(t, same, hash1 == hash2)
		requireReadable(t, bytes1, kind1, parts1)
		requireReadable(t, bytes2, kind2, parts2)
	})
}

// cut makes parts of the lengths given, as far as the text goes, and of the rest.
func cut(text string, lengths []byte) []string {
	var parts []string
	for _, n := range lengths {
		at := min(int(n), len(text))
		parts = append(parts, text[:at])
		text = text[at:]
	}
	if text != "" {
		parts = append(parts, text)
	}
	return parts
}

// image is what a subject is hashed from, and its hash.
func (h *hasher) image(kind byte, parts []string) ([]byte, subjectHash) {
	p := h.begin(kind)
	for _, part := range parts {
		p.part(part)
	}
	return bytes.Clone(p.buf), h.end(p)
}

// requireReadable reads kind and parts back: what can be read in one way only
// was written of one thing only.
func requireReadable(t *testing.T, image []byte, kind byte, parts []string) {
	t.Helper()
	require.Equal(t, kind, image[0])
	rest := image[1:]
	for _, part := range parts {
		n, size := binary.Uvarint(rest)
		require.Positive(t, size)
		require.Equal(t, part, string(rest[size:size+int(n)]))
		rest = rest[size+int(n):]
	}
	require.Empty(t, rest)
}

// Addresses are one client if, and only if, they share the prefix that the rule
// counts by, whatever their zones; an IPv4 address is one client, mapped or not.
func FuzzAddress(f *testing.F) {
	add := func(a, b string, bits byte) {
		x, y := netip.MustParseAddr(a), netip.MustParseAddr(b)
		f.Add(x.AsSlice(), x.Zone(), y.AsSlice(), y.Zone(), bits)
	}
	add("192.0.2.1", "::ffff:192.0.2.1", 64)
	add("192.0.2.1", "192.0.2.2", 48)
	add("192.0.2.1", "::192.0.2.1", 128)
	add("2001:db8:1:2::1", "2001:db8:1:2:ffff::", 64)
	add("2001:db8:1:2::1", "2001:db8:1:3::1", 64)
	add("2001:db8:1:2::1", "2001:db8:1:3::1", 63)
	add("fe80::1%eth0", "fe80::1%eth1", 128)
	add("::", "0.0.0.0", 32)
	f.Add([]byte{}, "", []byte{0}, "x", byte(64))
	h, err := newHasher(make([]byte, minSecret), "test")
	require.NoError(f, err)
	f.Fuzz(func(t *testing.T, raw1 []byte, zone1 string, raw2 []byte, zone2 string, b byte) {
		addr1, addr2 := address(raw1, zone1), address(raw2, zone2)
		for _, bits := range []int{defaultV6Bits, 48, 32 + int(b)%97} {
			image1, image2 := h.addressImage(addr1, bits), h.addressImage(addr2, bits)
			require.Equal(t, counted(raw1, bits) == counted(raw2, bits), bytes.Equal(image1, image2), "%v and %v by %d bits", addr1, addr2, bits)
			require.Equal(t, len(image1)-2, int(image1[1]), "a part with its length")
			if addr1.Is4() {
				mapped := netip.AddrFrom16(addr1.As16())
				require.Equal(t, image1, h.addressImage(mapped, bits))
				require.Equal(t, image1, h.addressImage(mapped.WithZone(zone1), bits))
			}
		}
	})
}

// address is that of 4 or 16 bytes; of any other number, none.
func address(raw []byte, zone string) netip.Addr {
	addr, _ := netip.AddrFromSlice(raw)
	return addr.WithZone(zone)
}

func (h *hasher) addressImage(addr netip.Addr, bits int) []byte {
	p := h.begin(kindIP).address(addr, bits)
	defer h.end(p)
	return bytes.Clone(p.buf)
}

// counted tells clients apart by hand: the four bytes of an IPv4 address, or the
// bits of an IPv6 address that count, each as a character.
func counted(raw []byte, bits int) string {
	mapped := append(make([]byte, 10), 0xff, 0xff)
	switch {
	case len(raw) == 4:
		return "4" + string(raw)
	case len(raw) != 16:
		return "none"
	case bytes.HasPrefix(raw, mapped):
		return "4" + string(raw[12:])
	}
	text := []byte("6")
	for i := range bits {
		text = append(text, '0'+raw[i/8]>>(7-i%8)&1)
	}
	return string(text)
}
