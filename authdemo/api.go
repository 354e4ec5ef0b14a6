package authdemo

import (
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"authguard/authdemo/accounts"
	"authguard/authdemo/pages"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/fields"
)

var quotes = []string{
	"Have patience awhile; slanders are not long-lived. — Immanuel Kant",
	"Adopt the pace of nature: her secret is patience. — Ralph Waldo Emerson",
	"Patience is bitter, but its fruit is sweet. — Jean-Jacques Rousseau",
	"He that can have patience can have what he will. — Benjamin Franklin",
}

// exportCost is how many calls of /api/quote one of /api/export is worth. A free
// key's bucket never holds so many: an export is what the paid tier is for.
const exportCost = 20

// quote: GET /api/quote with an API key.
func quote() any { return map[string]string{"quote": quotes[rand.IntN(len(quotes))]} }

// export: GET /api/export with an API key.
func export() any { return map[string][]string{"quotes": quotes} }

// withKey answers a call with an API key at the cost given. A good key is
// limited for itself and for its owner, whatever others do from the same
// address, and by the policy of its tier; what comes without one is limited by
// address, one unit a try whatever was asked for.
func (s *Service) withKey(cost int64, answer func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		key, err := s.accounts.ByKey(r.Context(), presentedKey(r.Header))
		if errors.Is(err, accounts.ErrNotFound) {
			s.refuseKey(w, r)
			return
		}
		if err != nil {
			s.refuse(w, r, err, pages.Error, pages.View{})
			return
		}
		pass, err := s.guard.Check(r.Context(), guard.Attempt{
			Action:  actionOf(key.Tier),
			APIKey:  strconv.FormatInt(key.ID, 10),
			Account: key.Owner.Email,
			IP:      clientIP(r),
			Cost:    cost,
		})
		if err != nil {
			if denied := (*guard.Denied)(nil); errors.As(err, &denied) {
				httpguard.SetRateLimit(w.Header(), denied)
			}
			s.refuse(w, r, err, pages.Error, pages.View{})
			return
		}
		pass.Succeed(r.Context()) // a refund that fails is reported to the observer
		httpguard.SetRateLimit(w.Header(), pass)
		writeJSON(w, http.StatusOK, answer())
	}
}

// actionOf is the action that a call with a key of this tier is counted under.
func actionOf(tier accounts.Tier) string {
	if tier == accounts.Pro {
		return actAPIPro
	}
	return actAPI
}

func (s *Service) refuseKey(w http.ResponseWriter, r *http.Request) {
	err := s.chargeAddress(r, actNoKey)
	if err == nil {
		w.Header().Set("WWW-Authenticate", `Bearer realm="authdemo"`)
		err = &problem{Status: http.StatusUnauthorized, Code: "invalid_key", Detail: "send an API key as Authorization: Bearer KEY or X-API-Key: KEY"}
	}
	s.refuse(w, r, err, pages.Error, pages.View{})
}

// presentedKey is the API key of a request, or "" if there is none, or more
// than one: then nobody could say which is meant.
func presentedKey(h http.Header) string {
	keys := h.Values("X-API-Key")
	for _, v := range h.Values("Authorization") {
		scheme, key, _ := strings.Cut(v, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return ""
		}
		keys = append(keys, strings.TrimSpace(key))
	}
	if len(keys) != 1 {
		return ""
	}
	return keys[0]
}

// newKey: POST /api/keys, with {tier} or without. Here even a browser gets the
// answer at once and not by a redirect: the key is shown this once, and belongs
// into no address bar.
func (s *Service) newKey(w http.ResponseWriter, r *http.Request) {
	tier, err := chosenTier(w, r)
	if err != nil {
		s.refuse(w, r, malformed(err), pages.Account, pages.View{})
		return
	}
	key, err := s.accounts.NewKey(r.Context(), user(r).ID, tier)
	if errors.Is(err, accounts.ErrTooManyKeys) {
		err = errTooManyKeys
	}
	switch {
	case err != nil:
		s.refuse(w, r, err, pages.Account, pages.View{})
	case wantsHTML(r):
		s.render(w, r, http.StatusCreated, pages.Account, pages.View{Key: key})
	default:
		writeJSON(w, http.StatusCreated, map[string]string{"key": key})
	}
}

// chosenTier is the tier that the request asks for. In a real service nobody
// chooses it: billing knows what the owner pays for.
func chosenTier(w http.ResponseWriter, r *http.Request) (accounts.Tier, error) {
	in, err := fields.ReadOptional(w, r, "tier")
	if err != nil {
		return "", err
	}
	text, chosen := in["tier"]
	switch tier := accounts.Tier(text); {
	case !chosen:
		return accounts.Free, nil
	case tier == accounts.Free, tier == accounts.Pro:
		return tier, nil
	}
	return "", &fields.Error{Status: http.StatusBadRequest, Detail: "tier must be free or pro"}
}
