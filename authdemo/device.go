package authdemo

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"authguard/authdemo/accounts"
	"authguard/guard"
	"authguard/internal/fields"
)

// resolve tells the guard whose devices count for the account of an address.
func (s *Service) resolve(ctx context.Context, email string) (guard.Account, error) {
	a, err := s.accounts.Identify(ctx, email)
	if err != nil || a.ID == 0 {
		return guard.Account{}, err
	}
	return guardAccount(a), nil
}

func guardAccount(a accounts.Account) guard.Account {
	return guard.Account{ID: strconv.FormatInt(a.ID, 10), Generation: uint64(a.DeviceGeneration), Revoked: a.RevokedDevices}
}

// deviceCookie is the cookie's name, which does not outlive the browser's trust in
// the host that set it.
func (s *Service) deviceCookie() string {
	if s.secure() {
		return "__Host-authdemo_device"
	}
	return "authdemo_device"
}

// device is what the client brings as its device cookie, or "".
func (s *Service) device(r *http.Request) string {
	c, err := r.Cookie(s.deviceCookie())
	if err != nil {
		return ""
	}
	return c.Value
}

// trustDevice makes this browser a device of the account, after the last factor has
// succeeded or a link from the account's mailbox was opened. a is as it was read
// before the secret was compared. Without the cookie the owner is a stranger at the
// next login, and nothing worse: a failure is logged and hinders nobody.
func (s *Service) trustDevice(w http.ResponseWriter, r *http.Request, a accounts.Account) {
	value, device, err := s.guard.TrustDevice(guardAccount(a), s.device(r))
	if err == nil {
		err = s.accounts.KeepDevice(r.Context(), a, device.ID, device.Expires)
	}
	if err != nil {
		s.cfg.Log.ErrorContext(r.Context(), "device not trusted", "err", err)
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: s.deviceCookie(), Value: value, Path: "/", MaxAge: int(guard.DeviceLifetime.Seconds()),
		HttpOnly: true, Secure: s.secure(), SameSite: http.SameSiteLaxMode,
	})
}

// allDevices is what revokeDevice takes for all of them; no device has this id.
const allDevices = "all"

// revokeDevice: POST /account/devices/revoke {device}, an id from the account's page
// or "all".
func (s *Service) revokeDevice(w http.ResponseWriter, r *http.Request, in fields.Values) error {
	var err error
	if id := in["device"]; id == allDevices {
		err = s.accounts.RevokeDevices(r.Context(), user(r).ID)
		if streaks := deviceStreaks(s.guard.Policies()); err == nil && len(streaks) > 0 {
			// What devices had failed at: none of them can fail any more.
			err = s.guard.Unlock(context.WithoutCancel(r.Context()), user(r).Email, streaks...)
		}
	} else {
		err = s.accounts.RevokeDevice(r.Context(), user(r).ID, id)
	}
	if err != nil {
		return err
	}
	s.done(w, r, http.StatusNoContent, nil, "/account", noticeDevices)
	return nil
}

// deviceStreaks are the rules of the password's actions that count the failures of all
// devices of an account.
func deviceStreaks(policies []guard.Policy) (names []string) {
	for _, p := range policies {
		if p.Action != actLogin && p.Action != actReauth {
			continue
		}
		for _, r := range p.Rules {
			if r.Clients == guard.TrustedClients && r.By == guard.ByAccount && r.Counts == guard.Failures {
				names = append(names, p.Action+"/"+r.Name)
			}
		}
	}
	return names
}

// A listedDevice is one of those that the account's page lists.
type listedDevice struct {
	accounts.Device
	Here bool // it is the browser that asks
}

// devices are what the account's page lists. If they cannot be found out, it lists
// none.
func (s *Service) devices(r *http.Request) []listedDevice {
	a, ok := r.Context().Value(userKey{}).(accounts.Account)
	var err error
	if !ok {
		a, err = s.current(r.Context())
	}
	var all []accounts.Device
	if err == nil {
		all, err = s.accounts.Devices(r.Context(), a.ID)
	}
	if err != nil && !errors.Is(err, errNobody) {
		s.logFault(r, "devices not listed", err)
	}
	here, _ := s.guard.Device(guardAccount(a), s.device(r))
	listed := make([]listedDevice, len(all))
	for i, d := range all {
		listed[i] = listedDevice{d, d.ID == here.ID}
	}
	return listed
}
