package httpguard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"authguard/guard"
	"authguard/limiter"
)

// Problem is the body of a refusal (RFC 9457, application/problem+json).
type Problem struct {
	Type   string `json:"type,omitempty"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`

	// Error is a word for programs: "rate_limited", "locked", "challenge_required",
	// "unavailable", "cost_too_high", "invalid_request" or "internal".
	Error string `json:"error"`

	// RetryAfter repeats the field Retry-After, in seconds.
	RetryAfter int64 `json:"retry_after,omitempty"`

	// Violated names the rules that refuse, as "action/rule".
	Violated []string `json:"violated-policies,omitempty"`

	// Challenge is what to solve instead of waiting, if Error is
	// "challenge_required". The request is sent again with the token, a dot and the
	// solution as its answer.
	Challenge *guard.Puzzle `json:"challenge,omitempty"`
}

// Problem types registered for quotas (draft-ietf-httpapi-ratelimit-headers).
const (
	typeQuotaExceeded   = "https://iana.org/assignments/http-problem-types#quota-exceeded"
	typeReducedCapacity = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
)

// unavailableRetry is what a client is told while the limits cannot be checked:
// nobody knows how long, and most such faults are over at once.
const unavailableRetry = time.Second

// ProblemOf says how to answer an error of [guard.Guard.Check]: 429 for a
// refusal, 503 if the limits cannot be checked, 400 for a cost that no wait
// will admit and for an account that is none, and 500 for everything else, which is a mistake in the program.
func ProblemOf(err error) Problem {
	var denied *guard.Denied
	switch {
	case errors.As(err, &denied):
		p := Problem{
			Type:       typeQuotaExceeded,
			Title:      "Too many attempts",
			Status:     http.StatusTooManyRequests,
			Error:      "rate_limited",
			RetryAfter: seconds(denied.RetryAfter),
		}
		p.Detail = fmt.Sprintf("Try again in %s.", inWords(p.RetryAfter))
		if denied.Locked {
			p.Title = "Locked after too many failures"
			p.Error = "locked"
			p.Detail = "Waiting does not help. A password reset opens the account."
		}
		if p.Challenge = denied.Challenge; p.Challenge != nil {
			p.Title = "Challenge required"
			p.Error = "challenge_required"
			p.Detail = fmt.Sprintf("Solve the challenge, or try again in %s.", inWords(p.RetryAfter))
		}
		for _, rule := range denied.Rules {
			p.Violated = append(p.Violated, denied.Action+"/"+rule)
		}
		return p
	case errors.Is(err, guard.ErrUnavailable), errors.Is(err, guard.ErrBusy),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		p := Problem{
			Type:       typeReducedCapacity,
			Title:      "Temporarily unavailable",
			Status:     http.StatusServiceUnavailable,
			Error:      "unavailable",
			RetryAfter: seconds(unavailableRetry),
		}
		p.Detail = fmt.Sprintf("Try again in %s.", inWords(p.RetryAfter))
		return p
	case errors.Is(err, limiter.ErrCostTooHigh):
		return Problem{
			Title:  "Request too large",
			Status: http.StatusBadRequest,
			Detail: "This request costs more than its limit ever admits. Ask for less.",
			Error:  "cost_too_high",
		}
	case errors.Is(err, guard.ErrNoAccount):
		p := notUnderstood()
		p.Detail = "No account was named."
		return p
	}
	return Problem{
		Title:  "Internal error",
		Status: http.StatusInternalServerError,
		Error:  "internal",
	}
}

func notUnderstood() Problem {
	return Problem{Title: "Request not understood", Status: http.StatusBadRequest, Error: "invalid_request"}
}

// seconds is d as delay-seconds of RFC 9110, section 10.2.3: rounded up, so
// that waiting as told is enough, and at least 1, because clients take 0 for
// nothing said.
func seconds(d time.Duration) int64 {
	return max(1, int64((d+time.Second-1)/time.Second))
}

// inWords says a wait as people do, never shorter than it is.
func inWords(s int64) string {
	switch {
	case s == 1:
		return "1 second"
	case s < 2*60:
		return fmt.Sprintf("%d seconds", s)
	case s < 2*60*60:
		return fmt.Sprintf("%d minutes", (s+59)/60)
	case s < 48*60*60:
		return fmt.Sprintf("%d hours", (s+3599)/3600)
	}
	return fmt.Sprintf("%d days", (s+86399)/86400)
}
