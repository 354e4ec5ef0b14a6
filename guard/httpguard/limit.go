package httpguard

import (
	"errors"
	"net/http"

	"authguard/guard"
)

var errNoIdentity = errors.New("httpguard: Limit was given no identity: it must stand behind the authentication")

// LimitAddress is middleware that charges every request to action by the
// client's address ([ClientIP]), before the body is read or anybody has proved
// who it is. The fields tell of rules by address only.
//
// Rules that count failures keep what is not answered with 2xx or 304, so put in
// front of an authentication they count bad keys. See [Edge.Guard] on settling.
func (e *Edge) LimitAddress(action string) func(http.Handler) http.Handler {
	e.knows(action)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isOptions(w, r) {
				return
			}
			e.limit(w, r, guard.Attempt{Action: action}, toAddress, next)
		})
	}
}

// Limit is middleware that charges every request to whoever has proved to send
// it, so it stands behind the authentication. identify reads from the request
// (its context) who that is, and says which action is charged and at what cost:
//
//	edge.Limit(func(r *http.Request) (guard.Attempt, bool) {
//		key, ok := keyFrom(r.Context())
//		return guard.Attempt{Action: "api_" + key.Tier, APIKey: key.ID, Cost: 5}, ok
//	})
//
// If it reports false, the middleware stands in the wrong place: the request is
// answered 500, charged to nobody, and the mistake is logged. IP is filled in, and
// Challenge from the header [ChallengeHeader]. The fields tell of all rules that deny.
//
// A request that a queue ([limiter.LeakyBucket]) admits waits for its turn. If it
// cannot, or its client goes away meanwhile, its charges are given back.
func (e *Edge) Limit(identify func(*http.Request) (guard.Attempt, bool)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isOptions(w, r) {
				return
			}
			a, ok := identify(r)
			if !ok {
				e.Refuse(w, r, errNoIdentity)
				return
			}
			e.limit(w, r, a, toOwner, next)
		})
	}
}

func (e *Edge) limit(w http.ResponseWriter, r *http.Request, a guard.Attempt, who audience, next http.Handler) {
	if !a.IP.IsValid() {
		a.IP = ClientIP(r)
	}
	if a.Challenge == "" {
		a.Challenge = r.Header.Get(ChallengeHeader) // the body is not read here
	}
	h := w.Header()
	pass, err := e.guard.Check(r.Context(), a)
	if err != nil {
		clearFields(h)
		if denied := (*guard.Denied)(nil); errors.As(err, &denied) {
			e.tell(h, r, denied.Limits(), who)
		}
		e.Refuse(w, r, err)
		return
	}
	if err := e.queue.wait(r.Context(), turn(pass)); err != nil {
		_ = pass.Cancel(r.Context()) // nothing was done; at worst the place stays taken
		clearFields(h)
		e.Refuse(w, r, err)
		return
	}
	e.tell(h, r, pass.Limits(), who)
	e.serve(w, r, pass, next)
}

// tell sets the fields, for pages of other origins, too.
func (e *Edge) tell(h http.Header, r *http.Request, limits []guard.Status, who audience) {
	e.setFields(h, limits, who)
	expose(h, r, e.dialect.fields()...)
}
