package policies

import (
	"context"
	"errors"
	"time"

	"authguard/guard"
)

// ownerComes lets the owner of the one account log in: as an untrusted client or,
// where the guesser has a device of the account, on another one.
func (a *attack) ownerComes(ctx context.Context) error {
	attempt := a.attemptAt(0, ownerAddress)
	attempt.Device = a.ownerCookie
	pass, err := a.check(ctx, attempt, true)
	if denied := (*guard.Denied)(nil); errors.As(err, &denied) && !denied.Locked {
		a.ownerAt += denied.RetryAfter.Microseconds()
		return nil
	} else if denied == nil && err != nil {
		return err
	}
	noon := a.start + (12 * time.Hour).Microseconds()
	a.ownerAt = noon + ((a.now-noon)/day.Microseconds()+1)*day.Microseconds()
	if err != nil {
		return nil // locked out
	}
	a.tried, a.blocked = 0, a.now // it may have ended what the guesser waits for
	if err := pass.Succeed(ctx); err != nil || !a.stolen {
		return err
	}
	a.ownerCookie, _, err = a.guard.TrustDevice(victim, a.ownerCookie)
	return err
}
