package guard

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash"
	"net/netip"
	"strconv"
	"sync"
)

// A store key is
//
//	ag:{SSSSSSSSSSSSSSSS}RRRRRRRR
//
// S, 16 characters, is a keyed hash of who is counted; R, 8 characters, is one
// of what counts: action, rule, the limit's place in the rule, and its law. The
// braces keep all limits of one subject in one slot of a Redis Cluster. No name
// and no address is in a key, and nobody without the secret can confirm one.
const (
	keyPrefix   = "ag:{"
	subjectLen  = 16
	limitTagLen = 8
	keyLen      = len(keyPrefix) + subjectLen + 1 + limitTagLen
)

// A storeKey has the bytes of a key.
type storeKey struct {
	prefix  [len(keyPrefix)]byte
	subject subjectHash
	brace   byte
	tag     [limitTagLen]byte
}

// A subjectHash stands for whom a rule counts.
type subjectHash [subjectLen]byte

// hasher derives the parts of keys from a guard's secret.
type hasher struct {
	pool sync.Pool // of *hashing
}

// maxPooled bounds, in bytes, the memory that a hashing is kept with.
const maxPooled = 4096

type hashing struct {
	mac hash.Hash
	buf []byte
}

// newHasher derives its key from secret for one purpose, so that no two uses
// of the secret ever hash alike.
func newHasher(secret []byte, purpose string) (*hasher, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "authguard "+purpose, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("guard: Secret: %w", err)
	}
	h := new(hasher)
	h.pool.New = func() any { return &hashing{mac: hmac.New(sha256.New, key)} }
	return h, nil
}

// begin starts a hash of a kind. What goes in are length-prefixed parts, so
// that no two lists of parts ever read alike.
func (h *hasher) begin(kind byte) *hashing {
	p := h.pool.Get().(*hashing)
	p.buf = append(p.buf[:0], kind)
	return p
}

func (p *hashing) part(s string) *hashing {
	p.buf = binary.AppendUvarint(p.buf, uint64(len(s)))
	p.buf = append(p.buf, s...)
	return p
}

// address adds what an address is counted under. All attempts without an
// address are one client: somebody hides them, or a listener has none to give,
// and neither may go uncounted.
func (p *hashing) address(addr netip.Addr, bits int) *hashing {
	if !addr.IsValid() {
		p.buf = append(p.buf, 0)
		return p
	}
	at := len(p.buf)
	p.buf = append(p.buf, 0)
	p.buf, _ = prefix(addr, bits).AppendBinary(p.buf) // never fails
	p.buf[at] = byte(len(p.buf) - at - 1)
	return p
}

// sum finishes a hash.
func (h *hasher) sum(p *hashing) (s [sha256.Size]byte) {
	p.mac.Reset()
	p.mac.Write(p.buf)
	p.buf = p.mac.Sum(p.buf[:0])
	copy(s[:], p.buf)
	if cap(p.buf) <= maxPooled { // somebody's API key may be a megabyte
		h.pool.Put(p)
	}
	return s
}

// end finishes the hash of a subject.
func (h *hasher) end(p *hashing) (s subjectHash) {
	sum := h.sum(p)
	base64.RawURLEncoding.Encode(s[:], sum[:subjectLen*6/8])
	return s
}

// key is the key of one limit of one rule, for a subject yet to be put in. Its tag
// tells the limit from all others.
func (h *hasher) key(action, rule string, index int, law string) storeKey {
	s := h.end(h.begin('l').part(action).part(rule).part(strconv.Itoa(index)).part(law))
	return storeKey{prefix: [len(keyPrefix)]byte([]byte(keyPrefix)), brace: '}', tag: [limitTagLen]byte(s[:])}
}

// identity is an attempt's account, resolved once and used for everything.
type identity struct {
	account string      // canonical name; "" if there is none
	known   Account     // from the resolver; zero if it knows none
	device  deviceNonce // that the client was recognised by, if trusted
	trusted bool
}

// parts are what an account is hashed by. An id never reads like a name.
func (i *identity) parts() (kind, text string) {
	if i.known.ID != "" {
		return "id", i.known.ID
	}
	return "name", i.account
}

// subjects are the hashes of an attempt for each of a policy's kinds.
// A zero hash means that the attempt has no such subject.
func (h *hasher) subjects(dst []subjectHash, kinds []subjectKind, a *Attempt, who *identity) []subjectHash {
	var v4 subjectHash // an IPv4 address is one subject, whatever the IPv6 prefix
	for _, k := range kinds {
		var s subjectHash
		switch k.kind {
		case kindAccount:
			if who.account != "" {
				form, text := who.parts()
				s = h.end(h.begin(kindAccount).part(form).part(text))
			}
		case kindIP:
			if v4 != (subjectHash{}) {
				s = v4
				break
			}
			s = h.end(h.begin(kindIP).address(a.IP, k.bits))
			if a.IP.Is4() || a.IP.Is4In6() {
				v4 = s
			}
		case kindIPAccount:
			if who.account != "" {
				form, text := who.parts()
				s = h.end(h.begin(kindIPAccount).address(a.IP, k.bits).part(form).part(text))
			}
		case kindDevice:
			if who.trusted {
				s = h.end(h.begin(kindDevice).part(string(who.device[:])))
			}
		case kindAPIKey:
			if a.APIKey != "" {
				s = h.end(h.begin(kindAPIKey).part(a.APIKey))
			}
		case kindTenant:
			if a.Tenant != "" {
				s = h.end(h.begin(kindTenant).part(a.Tenant))
			}
		case kindGlobal:
			s = h.end(h.begin(kindGlobal))
		case kindPart:
			if v := a.Parts[k.part]; v != "" {
				s = h.end(h.begin(kindPart).part(k.part).part(v))
			}
		}
		dst = append(dst, s)
	}
	return dst
}

// subjects are the hashes of an attempt for each of p's kinds, once for each secret.
func (g *Guard) subjects(dst []subjectHash, p *policy, a *Attempt, who *identity) []subjectHash {
	for _, h := range g.hashes {
		dst = h.subjects(dst, p.kinds, a, who)
	}
	return dst
}

// prefix is the address range that a client counts under: the address without
// its zone, an IPv4-mapped one as IPv4, an IPv6 one cut to bits.
func prefix(addr netip.Addr, bits int) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	if addr.Is4() {
		bits = addr.BitLen()
	}
	p, _ := addr.Prefix(bits) // never fails for these bits
	return p
}
