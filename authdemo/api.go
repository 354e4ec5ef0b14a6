package authdemo

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"

	"authguard/authdemo/accounts"
	"authguard/authdemo/pages"
	"authguard/guard"
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
func quote(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"quote": quotes[rand.IntN(len(quotes))]})
}

// export: GET /api/export with an API key.
func export(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string][]string{"quotes": quotes})
}

type keyKey struct{}

// withKey lets only those through who have a good API key, and keeps it in the
// context. What comes without one is limited by address, one unit a try whatever
// was asked for.
func (s *Service) withKey(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := s.accounts.ByKey(r.Context(), presentedKey(r.Header))
		switch {
		case errors.Is(err, accounts.ErrNotFound):
			s.refuseKey(w, r)
		case err != nil:
			s.refuse(w, r, err, pages.Error, pages.View{})
		default:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), keyKey{}, key)))
		}
	})
}

// limitKey charges a call to the key that withKey found and to its owner,
// whatever others do from the same address, by the policy of its tier.
func (s *Service) limitKey(cost int64) func(http.Handler) http.Handler {
	return s.edge.Limit(func(r *http.Request) (guard.Attempt, bool) {
		key, ok := r.Context().Value(keyKey{}).(accounts.Key)
		return guard.Attempt{
			Action:  actionOf(key.Tier),
			APIKey:  strconv.FormatInt(key.ID, 10),
			Account: key.Owner.Email,
			Cost:    cost,
		}, ok
	})
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
