package web

import (
	"errors"
	"fmt"
	"net/http"

	"authguard/bench/harness"
)

var inLoop = []harness.Metric{harness.Nanoseconds, harness.CPUTime, harness.Bytes, harness.Allocations}

func (f *family) admitted() error {
	e := harness.Experiment{
		Name:    "A request without a network, admitted",
		About:   "One client; its limits are as many as the requests, and the next must be refused.",
		Metrics: inLoop,
		Ratios:  []harness.Ratio{{Metric: harness.CPUTime, Per: bareChi}},
	}
	for _, m := range makers {
		e.Contenders = append(e.Contenders, f.direct(m, f.requests, f.requests))
	}
	_, err := f.Measure(e)
	return err
}

func (f *family) refused() error {
	const limit = 5
	e := harness.Experiment{
		Name:    "A request without a network, refused",
		About:   fmt.Sprintf("As above with limits of %d, of which exactly as many are admitted.", limit),
		Metrics: inLoop,
	}
	for _, m := range makers[1:] {
		e.Contenders = append(e.Contenders, f.direct(m, limit, limit))
	}
	_, err := f.Measure(e)
	return err
}

// direct calls a handler that admits limit requests.
func (f *family) direct(m maker, limit, admitted int) harness.Contender {
	return harness.Contender{Name: m.name, Run: func() (harness.Sample, error) {
		h, err := m.make(limit)
		if err != nil {
			return nil, err
		}
		r := request()
		r.RemoteAddr = "198.51.100.9:40000"
		w := &blank{header: http.Header{}}
		serve := func(int, int) (bool, error) {
			clear(w.header)
			w.status = http.StatusOK
			h.ServeHTTP(w, r)
			return answered(w.status)
		}
		sample, err := harness.Timed(1, f.requests, admitted, serve)
		if err != nil || m.name == bareChi {
			return sample, err
		}
		if more, err := serve(0, 0); err != nil || more {
			return nil, errors.Join(err, fmt.Errorf("admitted more than %d", limit))
		}
		return sample, nil
	}}
}

// answered says what a status means.
func answered(status int) (admitted bool, err error) {
	switch status {
	case http.StatusOK:
		return true, nil
	case http.StatusTooManyRequests:
		return false, nil
	}
	return false, fmt.Errorf("status %d", status)
}

// blank is a ResponseWriter that keeps nothing but the status.
type blank struct {
	header http.Header
	status int
}

func (b *blank) Header() http.Header         { return b.header }
func (b *blank) WriteHeader(status int)      { b.status = status }
func (b *blank) Write(p []byte) (int, error) { return len(p), nil }
func (b *blank) WriteString(s string) (int, error) {
	return len(s), nil
}
