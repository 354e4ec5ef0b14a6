package httpguard

import (
	"net/http"
	"strconv"
	"time"

	"authguard/guard"
)

// SetRateLimit sets X-RateLimit-Limit, X-RateLimit-Remaining and
// X-RateLimit-Reset (seconds since 1970, when the limit is whole again) to the
// tightest of an attempt's limits. from is a *[guard.Pass] or a *[guard.Denied].
//
// Only a client that owns the counters may see them: call it where the client
// has proved who it is, such as an API with a valid key. On a login they would
// tell a stranger how often an account was tried.
func SetRateLimit(h http.Header, from interface{ Limits() []guard.Status }) {
	tightest, ok := tightestOf(from.Limits())
	if !ok {
		return
	}
	d := tightest.Decision
	reset := d.Time().Add(d.ResetAfter + time.Second - time.Microsecond).Unix() // rounded up
	h.Set("X-RateLimit-Limit", strconv.FormatInt(d.Limit, 10))
	h.Set("X-RateLimit-Remaining", strconv.FormatInt(d.Remaining, 10))
	h.Set("X-RateLimit-Reset", strconv.FormatInt(reset, 10))
}

// tightestOf is the limit that leaves least; among equals, a denying one, then
// the one that takes longest to be whole.
func tightestOf(all []guard.Status) (tightest guard.Status, ok bool) {
	for i, s := range all {
		if i == 0 || tighter(s, tightest) {
			tightest = s
		}
	}
	return tightest, len(all) > 0
}

func tighter(a, b guard.Status) bool {
	x, y := a.Decision, b.Decision
	if x.Allowed != y.Allowed {
		return !x.Allowed
	}
	if x.Remaining != y.Remaining {
		return x.Remaining < y.Remaining
	}
	return x.ResetAfter > y.ResetAfter
}
