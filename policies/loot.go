package policies

import (
	"context"

	"authguard/guard"
)

// loot is what somebody has who stole a device cookie of the one account.
type loot struct {
	cookie      string
	worthless   int64  // from when on it is expired
	ownerCookie string // of another device
}

// victim is the one account.
var victim = guard.Account{ID: "victim"}

func resolve(_ context.Context, account string) (guard.Account, error) {
	if account == accountName(0) {
		return victim, nil
	}
	return guard.Account{}, nil
}

// steal gives the guesser a cookie that was made just now.
func (a *attack) steal() error {
	cookie, device, err := a.guard.TrustDevice(victim, "")
	if err != nil {
		return err
	}
	a.cookie, a.worthless = cookie, device.Expires.UnixMicro()
	a.ownerCookie, _, err = a.guard.TrustDevice(victim, "")
	return err
}
