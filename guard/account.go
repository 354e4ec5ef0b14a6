package guard

import "slices"

// An Account is what an application knows of the name of an account, as
// Config.Resolve tells it.
type Account struct {
	// ID is the account's own, whatever it is called. It is empty if there is
	// no such account: then attempts are counted by name, and nobody is trusted.
	ID string

	// Generation changes when all devices of the account are revoked, as with a
	// new password. A device counts only in the generation that it was issued in.
	Generation uint64

	// Revoked are the devices (Device.ID) that were revoked one by one.
	Revoked []string
}

func (a *Account) revoked(device string) bool { return slices.Contains(a.Revoked, device) }
