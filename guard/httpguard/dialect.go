package httpguard

import "fmt"

// Dialect is the family of fields in which a client is told where its limits
// stand. An [Edge] speaks one, so that no two fields contradict each other.
type Dialect uint8

const (
	// XRateLimit is X-RateLimit-Limit, -Remaining and -Reset, of the tightest
	// limit. Reset is in seconds since 1970, as at GitHub. It is the zero value:
	// no standard, and what most clients read.
	XRateLimit Dialect = iota

	// NoFields tells nothing. Refusals have Retry-After all the same.
	NoFields

	// Draft6 is RateLimit-Limit, -Remaining and -Reset of the tightest limit, and
	// RateLimit-Policy: draft-ietf-httpapi-ratelimit-headers, revisions 05 and
	// 06. Here and below all times are seconds from now.
	Draft6

	// Draft7 is one dictionary, RateLimit: limit=, remaining=, reset=, of the
	// tightest limit, and RateLimit-Policy: revision 07.
	Draft7

	// Draft11 is a list of all limits, RateLimit: "api/key";r=4;t=900, and of
	// their policies, RateLimit-Policy: "api/key";q=5;w=900: revisions 08 to 11.
	Draft11

	// Draft12 is Draft11 with the parameters a and w instead of r and t, as on
	// the working group's branch of 2026-08-15. It is provisional: revision 12
	// should have them so, but its text was not compared. Do not rely on it.
	Draft12
)

var dialectNames = [...]string{
	XRateLimit: "x", NoFields: "none", Draft6: "draft6", Draft7: "draft7", Draft11: "draft11", Draft12: "draft12",
}

func (d Dialect) String() string {
	if int(d) < len(dialectNames) {
		return dialectNames[d]
	}
	return fmt.Sprintf("Dialect(%d)", uint8(d))
}

// fields are the names of d's fields.
func (d Dialect) fields() []string {
	switch d {
	case XRateLimit:
		return []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	case Draft6:
		return []string{"RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset"}
	case Draft7, Draft11, Draft12:
		return []string{"RateLimit-Policy", "RateLimit"}
	}
	return nil
}

// parameters are what a list form calls the quota that is left, and its window.
func (d Dialect) parameters() (left, window string) {
	if d == Draft12 {
		return "a", "w"
	}
	return "r", "t"
}
