package guardtest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
)

// answer is what matters here of a response.
type answer struct {
	status     int
	retryAfter string
	panicked   any // with what the handler did
}

// serve asks h, and takes a panic for what a server makes of it: no answer for
// one client, and no end of the others.
func serve(h http.Handler, r *http.Request) (a answer) {
	w := httptest.NewRecorder()
	defer func() {
		if v := recover(); v != nil {
			a = answer{status: http.StatusInternalServerError, panicked: v}
		}
	}()
	h.ServeHTTP(w, r)
	return answer{status: w.Code, retryAfter: w.Header().Get("Retry-After")}
}

// busy is an answer that turns the client away for a while: a limit, or no room.
func (a answer) busy() bool {
	return a.status == http.StatusTooManyRequests || a.status == http.StatusServiceUnavailable
}

// fault says what is wrong with a refusal, "" if nothing is.
func (a answer) fault() string {
	if a.status != http.StatusTooManyRequests {
		return fmt.Sprintf("is answered %v, want 429", a)
	}
	if !a.saysWhen() {
		return fmt.Sprintf("is answered 429 with Retry-After %q, want seconds, at least 1, or a date", a.retryAfter)
	}
	return ""
}

// saysWhen reports a Retry-After of RFC 9110, section 10.2.3, that is no 0, which
// clients take for nothing said.
func (a answer) saysWhen() bool {
	if seconds, err := strconv.ParseInt(a.retryAfter, 10, 64); err == nil {
		return seconds >= 1
	}
	_, err := http.ParseTime(a.retryAfter)
	return err == nil
}

func (a answer) String() string {
	if a.panicked != nil {
		return fmt.Sprintf("by a panic (%v)", a.panicked)
	}
	return strconv.Itoa(a.status)
}
