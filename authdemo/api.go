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
)

var quotes = []string{
	"Have patience awhile; slanders are not long-lived. — Immanuel Kant",
	"Adopt the pace of nature: her secret is patience. — Ralph Waldo Emerson",
	"Patience is bitter, but its fruit is sweet. — Jean-Jacques Rousseau",
	"He that can have patience can have what he will. — Benjamin Franklin",
}

// quote: GET /api/quote with an API key. A good key is limited for itself and
// for its owner, whatever others do from the same address; what comes without
// one is limited by address.
func (s *Service) quote(w http.ResponseWriter, r *http.Request) {
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
		Action:  actAPI,
		APIKey:  strconv.FormatInt(key.ID, 10),
		Account: key.Owner.Email,
		IP:      clientIP(r),
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
	writeJSON(w, http.StatusOK, map[string]string{"quote": quotes[rand.IntN(len(quotes))]})
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

// newKey: POST /api/keys. Here even a browser gets the answer at once and not
// by a redirect: the key is shown this once, and belongs into no address bar.
func (s *Service) newKey(w http.ResponseWriter, r *http.Request) {
	key, err := s.accounts.NewKey(r.Context(), user(r).ID)
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
