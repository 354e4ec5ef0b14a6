package web

import (
	"time"

	"authguard/bench/harness"
)

const about = "A chi route that writes four bytes. Ours charges three limits of three laws (by key, owner and address) in one step and writes the " +
	"three fields `X-RateLimit-*`; httprate keeps a window counter and tollbooth a token bucket, one limit each, and httprate also three " +
	"behind each other. All keep their counts in memory."

// Run measures the family.
func Run(s *harness.Session) error {
	s.Section("Before an HTTP handler", about)
	f := family{Session: s, requests: 200_000, time: time.Second}
	if s.Quick {
		f.requests, f.time = 5_000, 50*time.Millisecond
	}
	for _, part := range []func() error{f.admitted, f.refused, f.loopback} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

type family struct {
	*harness.Session
	requests int           // of a run without a network
	time     time.Duration // of a run over loopback
}
