package guard

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/binary"
	"math"
	"time"
)

// A device cookie is a version and up to five entries, the newest first, in
// base64url. An entry is
//
//	key 1 | account 12 | nonce 12 | expires 4 | generation 8 | MAC 16
//
// bytes: which secret signed it, a keyed hash of the account, the device, a time
// in seconds since 1970, Account.Generation, and HMAC-SHA-256 of all of these. It
// tells nobody without the secret whose it is.
const (
	maxDevices    = 5
	deviceVersion = 1

	atAccount    = 1
	atNonce      = atAccount + 12
	atExpires    = atNonce + 12
	atGeneration = atExpires + 4
	atMAC        = atGeneration + 8
	entryLen     = atMAC + 16

	maxCookieBytes = 1 + maxDevices*entryLen
)

type deviceEntry [entryLen]byte

func (e *deviceEntry) nonce() deviceNonce { return deviceNonce(e[atNonce:atExpires]) }
func (e *deviceEntry) generation() uint64 { return binary.BigEndian.Uint64(e[atGeneration:]) }
func (e *deviceEntry) expires() time.Time {
	return time.Unix(int64(binary.BigEndian.Uint32(e[atExpires:])), 0)
}
func (e *deviceEntry) expired(now time.Time) bool { return !now.Before(e.expires()) }

var deviceText = base64.RawURLEncoding.Strict()

// parseDevices reads what may be anything; what is no cookie has no entries. The
// work is bounded: a longer text is not looked at.
func parseDevices(text string) []deviceEntry {
	if len(text) > deviceText.EncodedLen(maxCookieBytes) {
		return nil
	}
	raw, err := deviceText.DecodeString(text)
	if err != nil || len(raw)%entryLen != 1 || raw[0] != deviceVersion {
		return nil
	}
	var entries []deviceEntry
	for raw = raw[1:]; len(raw) > 0; raw = raw[entryLen:] {
		entries = append(entries, deviceEntry(raw[:entryLen]))
	}
	return entries
}

func formatDevices(entries []deviceEntry) string {
	raw := append(make([]byte, 0, maxCookieBytes), deviceVersion)
	for i := range entries {
		raw = append(raw, entries[i][:]...)
	}
	return deviceText.EncodeToString(raw)
}

// deviceKeys sign entries with the first and accept what any of them has signed.
type deviceKeys []deviceKey

type deviceKey struct {
	id byte // two keys may have the same: then both are tried
	*hasher
}

// newDeviceKeys derives a key from each secret, for device cookies alone.
func newDeviceKeys(secrets ...[]byte) (deviceKeys, error) {
	var keys deviceKeys
	for _, secret := range secrets {
		h, err := newHasher(secret, "devices v1")
		if err != nil {
			return nil, err
		}
		keys = append(keys, deviceKey{h.sum(h.begin('i'))[0], h})
	}
	return keys, nil
}

// account is what stands in an entry for the account.
func (k deviceKey) account(who identity) []byte {
	form, text := who.parts()
	sum := k.sum(k.begin('a').part(form).part(text))
	return sum[:atNonce-atAccount]
}

func (k deviceKey) mac(e *deviceEntry) []byte {
	sum := k.sum(k.begin('m').part(string(e[:atMAC])))
	return sum[:entryLen-atMAC]
}

// sign makes an entry of the account.
func (ks deviceKeys) sign(a Account, nonce deviceNonce, expires time.Time) (e deviceEntry) {
	k := ks[0]
	e[0] = k.id
	copy(e[atAccount:], k.account(a.identity()))
	copy(e[atNonce:], nonce[:])
	binary.BigEndian.PutUint32(e[atExpires:], uint32(min(expires.Unix(), math.MaxUint32)))
	binary.BigEndian.PutUint64(e[atGeneration:], a.Generation)
	copy(e[atMAC:], k.mac(&e))
	return e
}

// signer is the key that signed e; ok is false if none of ours has.
func (ks deviceKeys) signer(e *deviceEntry) (k deviceKey, ok bool) {
	for _, k := range ks {
		if k.id == e[0] && hmac.Equal(k.mac(e), e[atMAC:]) {
			return k, true
		}
	}
	return deviceKey{}, false
}

// find is the device of who's account among entries.
func (ks deviceKeys) find(entries []deviceEntry, who identity, now time.Time) (deviceNonce, bool) {
	for i := range entries {
		e := &entries[i]
		k, ok := ks.signer(e)
		if ok && hmac.Equal(k.account(who), e[atAccount:atNonce]) && who.known.ID != "" &&
			e.generation() == who.known.Generation && !e.expired(now) && !who.known.revoked(e.nonce().id()) {
			return e.nonce(), true
		}
	}
	return deviceNonce{}, false
}

// device is what find finds, as its owner sees it.
func (ks deviceKeys) device(entries []deviceEntry, who identity, now time.Time) (Device, bool) {
	nonce, ok := ks.find(entries, who, now)
	for i := range entries {
		if e := &entries[i]; ok && e.nonce() == nonce {
			return Device{ID: nonce.id(), Expires: e.expires()}, true
		}
	}
	return Device{}, false
}

// stays reports that e is kept beside a new entry of who: it may still count, for
// another account.
func (ks deviceKeys) stays(e deviceEntry, who identity, now time.Time) bool {
	k, ok := ks.signer(&e)
	return ok && !e.expired(now) && !hmac.Equal(k.account(who), e[atAccount:atNonce])
}
