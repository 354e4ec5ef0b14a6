package guard

import (
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"math"
	"time"
)

// A challenge's token is
//
//	version 1 | expires 4 | nonce 16 | MAC 16
//
// bytes in base64url: a time in seconds since 1970, what tells the token from all
// others, and HMAC-SHA-256 of these, the action, the account and the address, which
// are not in it.
const (
	tokenVersion = 1

	atTokenNonce = 1 + 4
	atTokenMAC   = atTokenNonce + len(challengeNonce{})
	tokenBytes   = atTokenMAC + 16
)

type challengeNonce [16]byte

var tokenText = base64.RawURLEncoding.Strict()

// tokenKey signs tokens, and nothing else.
type tokenKey struct{ *hasher }

func newTokenKey(secret []byte) (tokenKey, error) {
	h, err := newHasher(secret, "challenges v1")
	return tokenKey{h}, err
}

// seal makes a token for the attempt.
func (k tokenKey) seal(a *Attempt, who *identity, now time.Time) string {
	var raw [tokenBytes]byte
	raw[0] = tokenVersion
	expires := now.Add(challengeLifetime).Unix()
	binary.BigEndian.PutUint32(raw[1:], uint32(min(expires, math.MaxUint32)))
	rand.Read(raw[atTokenNonce:atTokenMAC]) // never fails: crypto/rand ends the program instead
	k.sign(raw[:], a, who)
	return tokenText.EncodeToString(raw[:])
}

// open is the nonce of a token that was sealed for such an attempt and is not
// expired. Nor may it last so much longer than a new one that it would outlive the
// charge by which it is used up.
func (k tokenKey) open(text string, a *Attempt, who *identity, now time.Time) (nonce challengeNonce, ok bool) {
	if len(text) != tokenText.EncodedLen(tokenBytes) {
		return nonce, false
	}
	raw, err := tokenText.DecodeString(text)
	if err != nil || len(raw) != tokenBytes || raw[0] != tokenVersion { // a line break is no digit
		return nonce, false
	}
	var want [tokenBytes]byte
	copy(want[:atTokenMAC], raw)
	k.sign(want[:], a, who)
	if !hmac.Equal(want[atTokenMAC:], raw[atTokenMAC:]) {
		return nonce, false
	}
	left := time.Unix(int64(binary.BigEndian.Uint32(raw[1:])), 0).Sub(now)
	return challengeNonce(raw[atTokenNonce:atTokenMAC]), left > 0 && left < once.Window
}

// sign fills in the MAC of a token.
func (k tokenKey) sign(raw []byte, a *Attempt, who *identity) {
	form, text := who.parts()
	sum := k.sum(k.begin(kindChallenge).part(string(raw[:atTokenMAC])).part(a.Action).
		address(a.IP, defaultV6Bits).part(form).part(text))
	copy(raw[atTokenMAC:], sum[:])
}
