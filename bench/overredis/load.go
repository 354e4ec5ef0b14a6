package overredis

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"authguard/bench/harness"
	"authguard/bench/server"
)

// Metrics of a load.
const (
	Rate      harness.Metric = "checks/s"
	Latency   harness.Metric = "median µs"
	Tail      harness.Metric = "p99 µs"
	ServerCPU harness.Metric = "server CPU µs"
	ClientCPU harness.Metric = "client CPU µs"
)

// A check asks once and reports whether it was admitted. n counts the caller's
// checks from 0.
type check func(n int) (admitted bool, err error)

// warming is how many checks each caller makes that do not count: connections are
// made and scripts learned.
const warming = 20

// load has a goroutine for each of checks call it until the time is over. Each
// answer must be admit.
func load(s *server.Server, d time.Duration, admit bool, checks []check) (harness.Sample, error) {
	took := make([][]float64, len(checks)) // µs
	errs := make([]error, len(checks))
	n := make([]int, len(checks))
	phase := func(least int, d time.Duration) time.Duration {
		begin := time.Now()
		var wg sync.WaitGroup
		for i, ask := range checks {
			wg.Go(func() {
				mine := took[i][:0]
				for at := time.Now(); len(mine) < least || at.Sub(begin) < d; n[i]++ {
					admitted, err := ask(n[i])
					if err != nil {
						errs[i] = err
						return
					}
					if admitted != admit {
						errs[i] = fmt.Errorf("check %d of a caller: admitted is %v, want %v", n[i], admitted, admit)
						return
					}
					next := time.Now()
					mine = append(mine, float64(next.Sub(at))/1e3)
					at = next
				}
				took[i] = mine
			})
		}
		wg.Wait()
		return time.Since(begin)
	}
	phase(warming, 0)
	if err := first(errs); err != nil {
		return nil, err
	}
	serverBefore, err := s.CPU()
	if err != nil {
		return nil, err
	}
	clientBefore := harness.CPU()
	elapsed := phase(1, d)
	client := harness.CPU() - clientBefore
	serverAfter, err := s.CPU()
	if err := cmp.Or(err, first(errs)); err != nil {
		return nil, err
	}
	var all []float64
	for _, mine := range took {
		all = append(all, mine...)
	}
	count := float64(len(all))
	return harness.Sample{
		string(Rate):      count / elapsed.Seconds(),
		string(Latency):   harness.Median(all),
		string(Tail):      harness.Quantile(all, 0.99),
		string(ServerCPU): float64(serverAfter-serverBefore) / 1e3 / count,
		string(ClientCPU): float64(client) / 1e3 / count,
	}, nil
}

// first is the first error that is one: hundreds of callers fail alike.
func first(errs []error) error { return cmp.Or(errs...) }
