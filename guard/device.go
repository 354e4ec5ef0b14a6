package guard

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"time"
)

// DeviceLifetime is how long a device is trusted after the last success on it.
const DeviceLifetime = 180 * 24 * time.Hour

// A Device is a browser or program on which the owner of an account has proved
// to be the owner.
type Device struct {
	// ID names the device to the owner, who may revoke it: see Account.Revoked.
	// It stays the same when the device is trusted once more, and does not let
	// anybody make its cookie.
	ID string

	Expires time.Time
}

// TrustDevice makes the client a device of the account: it returns the value that
// the client's device cookie gets. cookie is its present value or "". Other accounts'
// entries stay in it, up to five in all; the one that was made or renewed least
// recently goes. What is no cookie of this guard is replaced.
//
// Call it after the last factor has succeeded, or when a link from the owner's
// mailbox was opened, and never before. a is what Config.Resolve tells, read no
// later than the secret was compared: else somebody with an old password, whose
// attempt crosses the change, would be trusted under the new one.
//
// The cookie is a secret, but no proof of identity: whoever steals it may guess at
// the password by the limits of trusted clients. Send it with HttpOnly, Secure and
// SameSite, to the host alone, until Device.Expires.
//
// The protocol is OWASP's (Slow Down Online Guessing Attacks with Device Cookies),
// with a generation and revocation, several accounts in one cookie, and limits on
// all devices of an account together.
func (g *Guard) TrustDevice(a Account, cookie string) (string, Device, error) {
	switch {
	case g == nil || g.resolve == nil:
		return "", Device{}, errors.New("guard: no device can be trusted: Config.Resolve is nil")
	case a.ID == "":
		return "", Device{}, fmt.Errorf("%w: no account to trust a device for", ErrMissing)
	}
	now := g.now()
	entries := parseDevices(cookie)
	nonce, known := g.devices.find(entries, a.identity(), now)
	if !known {
		rand.Read(nonce[:]) // never fails: crypto/rand ends the program instead
	}
	expires := now.Add(DeviceLifetime).Truncate(time.Second)
	all := append(make([]deviceEntry, 0, maxDevices), g.devices.sign(a, nonce, expires))
	for _, e := range entries {
		if g.devices.stays(e, a.identity(), now) && len(all) < maxDevices {
			all = append(all, e)
		}
	}
	return formatDevices(all), Device{ID: nonce.id(), Expires: expires}, nil
}

// Device is the device of the account that a client with this cookie is, if it is
// one: for the page on which an owner sees the devices, and which of them is at hand.
func (g *Guard) Device(a Account, cookie string) (Device, bool) {
	if g == nil || g.resolve == nil || a.ID == "" {
		return Device{}, false
	}
	return g.devices.device(parseDevices(cookie), a.identity(), g.now())
}

// deviceNonce tells a device from all others.
type deviceNonce [12]byte

// id is the same whatever the guard's secret is, so that a list of revoked devices
// outlives a rotation. It needs no key: nobody can try 2^96 nonces.
func (n deviceNonce) id() string {
	sum := sha256.Sum256(append([]byte("authguard device v1 "), n[:]...))
	return base64.RawURLEncoding.EncodeToString(sum[:12])
}

// identity is the account as subjects of attempts are hashed.
func (a Account) identity() identity { return identity{known: a} }

// recognise tells whether the client with this cookie is a device of who. For an
// account that is unknown it does the same work.
func (g *Guard) recognise(who identity, cookie string) identity {
	if cookie == "" || g.resolve == nil || who.account == "" {
		return who
	}
	who.device, who.trusted = g.devices.find(parseDevices(cookie), who, g.now())
	return who
}
