package secondfactor

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/hotp"
	"github.com/pquerna/otp/totp"
)

// What every authenticator app understands.
const (
	digits = otp.DigitsSix
	period = 30 // seconds of a time step
)

// skew is how many time steps before and after the present one are good, too:
// clocks differ, and people type slowly. RFC 6238, section 5.2, has one.
const skew = 1

// Codes makes and compares second factors. It is safe for concurrent use.
type Codes struct {
	aead     cipher.AEAD
	previous cipher.AEAD // nil if there was no secret before
	compared atomic.Int64
}

// New derives the key that seals from the service's secret. What was sealed under
// the previous secret, if that is not nil, can still be opened; see [Codes.Reseal].
func New(secret, previous []byte) (*Codes, error) {
	c := new(Codes)
	var err error
	if c.aead, err = sealer(secret); err == nil && previous != nil {
		c.previous, err = sealer(previous)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

func sealer(secret []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "authdemo second factor v1", 32)
	if err != nil {
		return nil, fmt.Errorf("secondfactor: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("secondfactor: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, fmt.Errorf("secondfactor: %w", err)
	}
	return aead, nil
}

// Compared is how many codes were compared so far, of both kinds.
func (c *Codes) Compared() int64 { return c.compared.Load() }

// NewKey makes the key of an app for an account, and seals it for the database.
func (c *Codes) NewKey(account int64, issuer, email string) (key *otp.Key, sealed []byte, err error) {
	key, err = totp.Generate(totp.GenerateOpts{Issuer: issuer, AccountName: email, Period: period, Digits: digits})
	if err != nil {
		return nil, nil, fmt.Errorf("secondfactor: %w", err)
	}
	return key, c.aead.Seal(nil, nil, []byte(key.Secret()), owner(account)), nil
}

// Step compares a code with those of the present time step and of its neighbours.
// If one is equal, it tells which step that is: the caller must take each step
// once, and none before one that was taken. The error is that the sealed key was
// sealed under neither secret for this account; then nothing was compared.
func (c *Codes) Step(account int64, sealed []byte, code string, now time.Time) (step int64, ok bool, err error) {
	key, _, err := c.open(account, sealed)
	if err != nil {
		return 0, false, fmt.Errorf("secondfactor: the key of an app cannot be opened, as when the service's secret was changed: %w", err)
	}
	c.compared.Add(1)
	present := now.Unix() / period
	for n := present - skew; n <= present+skew; n++ {
		// Compares in constant time. What is no code at all is an error, and no other is.
		equal, _ := hotp.ValidateCustom(code, uint64(n), string(key), hotp.ValidateOpts{Digits: digits})
		if equal {
			step, ok = n, true
		}
	}
	return step, ok, nil
}

// Reseal seals a key under the present secret that was sealed under the previous one;
// ok is false if it was not.
func (c *Codes) Reseal(account int64, sealed []byte) (resealed []byte, ok bool) {
	key, old, err := c.open(account, sealed)
	if err != nil || !old {
		return nil, false
	}
	return c.aead.Seal(nil, nil, key, owner(account)), true
}

// open gives the key that was sealed, and whether the previous secret did it.
func (c *Codes) open(account int64, sealed []byte) (key []byte, old bool, err error) {
	key, err = c.aead.Open(nil, nil, sealed, owner(account))
	if err != nil && c.previous != nil {
		key, err = c.previous.Open(nil, nil, sealed, owner(account))
		old = err == nil
	}
	return key, old, err
}

// Clean is a code without the blanks and hyphens that people type and paste.
func Clean(typed string) string {
	return strings.NewReplacer(" ", "", "-", "", "\t", "").Replace(typed)
}

// IsTimed tells a code that an app may show from a recovery code, by its shape.
func IsTimed(code string) bool {
	return len(code) == digits.Length() && strings.Trim(code, "0123456789") == ""
}

// owner binds what is sealed to its account, so that a row of the database which
// is copied to another account opens nothing there.
func owner(account int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(account)) }
