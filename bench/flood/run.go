package flood

import (
	"errors"
	"fmt"
	"time"

	"authguard/bench/harness"
	"authguard/bench/server"
)

const (
	alone    harness.Metric = "logins/s alone"
	flooded  harness.Metric = "logins/s in the flood"
	kept     harness.Metric = "kept, %"
	p99Alone harness.Metric = "p99 ms alone"
	p99      harness.Metric = "p99 ms in the flood"
	p99Times harness.Metric = "p99, ×"
	guesses  harness.Metric = "guesses/s"
	silent   harness.Metric = "of them unanswered, %"
	computed harness.Metric = "guesses computed/s"
)

// Run measures the family.
func Run(s *harness.Session) error {
	s.Section("In a flood", fmt.Sprintf("%d people log in again and again while %d guesses a second come at accounts whose failures are used up, from %d addresses, "+
		"each guess in a goroutine of its own, at most %d at once. A password is an argon2id of 19 MiB, two passes and one thread, behind authdemo's gate: as many at once as there are cores, "+
		"64 waiting. Everything runs in one process without HTTP, so flood and defence share the cores. "+
		"Guarded, no guess may pass or be computed, and no honest person be denied. "+
		"Redis and its store are as they come, and give a check up after 50 ms: that is unanswered, and refused. Who finds no room or no answer comes back after %v.",
		honest, perSecond, botnet, atOnce, comeBack))
	srv, err := server.Start()
	if err != nil {
		return err
	}
	defer srv.Close()
	d := 2 * time.Second
	if s.Quick {
		d = 200 * time.Millisecond
	}
	e := harness.Experiment{
		Name:    "Honest logins",
		Metrics: []harness.Metric{alone, flooded, kept, p99Alone, p99, p99Times, guesses, silent, computed},
	}
	for _, m := range []maker{inMemory, overRedis(srv), gateAlone} {
		e.Contenders = append(e.Contenders, harness.Contender{Name: m.name, Run: func() (harness.Sample, error) { return besiege(m, d) }})
	}
	_, err = s.Measure(e)
	return err
}

// besiege measures a site without a flood and in one.
func besiege(m maker, d time.Duration) (harness.Sample, error) {
	s, closing, err := m.make()
	if err != nil {
		return nil, err
	}
	defer closing()
	if err := exhaust(s); err != nil {
		return nil, err
	}
	quiet, quietTime, err := logins(s, d)
	if err != nil {
		return nil, err
	}
	before := s.hasher.Computed()
	a := start(s)
	loud, loudTime, err := logins(s, d)
	sent := float64(a.sent.Load())
	if err := errors.Join(err, a.stop()); err != nil {
		return nil, err
	}
	others := float64(s.hasher.Computed()-before) - float64(len(loud))
	if s.guard != nil && others != 0 {
		return nil, fmt.Errorf("%v passwords of guesses were computed, want none", others)
	}
	sample := harness.Sample{
		string(alone):    float64(len(quiet)) / quietTime.Seconds(),
		string(flooded):  float64(len(loud)) / loudTime.Seconds(),
		string(p99Alone): milliseconds(quiet),
		string(p99):      milliseconds(loud),
		string(guesses):  sent / loudTime.Seconds(),
		string(computed): max(0, others) / loudTime.Seconds(),
	}
	sample[string(silent)] = 100 * float64(a.unanswered.Load()) / float64(max(1, a.sent.Load()))
	sample[string(kept)] = 100 * sample[string(flooded)] / sample[string(alone)]
	sample[string(p99Times)] = sample[string(p99)] / sample[string(p99Alone)]
	return sample, nil
}

// milliseconds is the 99th percentile.
func milliseconds(ds []time.Duration) float64 {
	xs := make([]float64, len(ds))
	for i, d := range ds {
		xs[i] = d.Seconds() * 1e3
	}
	return harness.Quantile(xs, 0.99)
}
