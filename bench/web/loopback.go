package web

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"authguard/bench/harness"
	"authguard/limiter"
)

const (
	perSecond harness.Metric = "requests/s"
	median    harness.Metric = "median µs"
	tail      harness.Metric = "p99 µs"
	cpu       harness.Metric = "CPU µs, both sides"
)

// loopback has handlers called over connections that are kept.
func (f *family) loopback() error {
	const connections = 16
	e := harness.Experiment{
		Name:    fmt.Sprintf("Over loopback, admitted, %d connections", connections),
		About:   "net/http serves; the client, in the same process, sends a request as soon as the one before is answered.",
		Metrics: []harness.Metric{perSecond, median, tail, cpu},
		Ratios:  []harness.Ratio{{Metric: perSecond, Per: bareChi}, {Metric: cpu, Per: bareChi}},
	}
	for _, m := range makers {
		e.Contenders = append(e.Contenders, harness.Contender{Name: m.name, Run: func() (harness.Sample, error) {
			h, err := m.make(limiter.MaxLimit)
			if err != nil {
				return nil, err
			}
			return drive(h, connections, f.time)
		}})
	}
	_, err := f.Measure(e)
	return err
}

// drive serves h and sends requests until the time is over. All must be admitted.
func drive(h http.Handler, connections int, d time.Duration) (harness.Sample, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: h}
	go server.Serve(l)
	defer server.Close()

	var text bytes.Buffer
	if err := request().Write(&text); err != nil {
		return nil, err
	}
	took := make([][]float64, connections) // µs
	errs := make([]error, connections)
	begin, used := time.Now(), harness.CPU()
	var wg sync.WaitGroup
	for i := range connections {
		wg.Go(func() { took[i], errs[i] = client(l.Addr(), text.Bytes(), begin.Add(d)) })
	}
	wg.Wait()
	elapsed := time.Since(begin)
	used = harness.CPU() - used
	if err := cmp.Or(errs...); err != nil {
		return nil, err
	}
	var all []float64
	for _, mine := range took {
		all = append(all, mine...)
	}
	n := float64(len(all))
	return harness.Sample{
		string(perSecond): n / elapsed.Seconds(),
		string(median):    harness.Median(all),
		string(tail):      harness.Quantile(all, 0.99),
		string(cpu):       used.Seconds() * 1e6 / n,
	}, nil
}

// client sends text over one connection, again and again.
func client(addr net.Addr, text []byte, until time.Time) (took []float64, err error) {
	conn, err := net.Dial("tcp", addr.String())
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	answers := bufio.NewReader(conn)
	for at := time.Now(); len(took) == 0 || at.Before(until); {
		if _, err := conn.Write(text); err != nil {
			return nil, err
		}
		r, err := http.ReadResponse(answers, nil)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return nil, err
		}
		if admitted, err := answered(r.StatusCode); err != nil || !admitted {
			return nil, errors.Join(err, fmt.Errorf("status %d, want 200", r.StatusCode))
		}
		next := time.Now()
		took = append(took, float64(next.Sub(at))/1e3)
		at = next
	}
	return took, nil
}
