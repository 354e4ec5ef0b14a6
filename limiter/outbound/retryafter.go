package outbound

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// maxPause bounds what a server can ask for.
const maxPause = 24 * time.Hour

// retryAfter reads the field Retry-After (RFC 9110, section 10.2.3): seconds or
// a date. It reports false where there is none that can be read.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	v := strings.TrimSpace(h.Get("Retry-After"))
	if v == "" {
		return 0, false
	}
	if strings.Trim(v, "0123456789") == "" {
		seconds, err := strconv.ParseInt(v, 10, 64)
		if err != nil || seconds > int64(maxPause/time.Second) {
			return maxPause, true // more digits than a number has
		}
		return time.Duration(seconds) * time.Second, true
	}
	date, err := http.ParseTime(v)
	if err != nil {
		return 0, false
	}
	// A date has whole seconds; the moment it names may be its last.
	if pause := date.Sub(now); pause < maxPause {
		return max(0, pause+time.Second), true
	}
	return maxPause, true
}
