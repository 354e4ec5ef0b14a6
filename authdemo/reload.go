package authdemo

import (
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"authguard/guard"
)

// reloads tell how the last reload of the policies went, in Prometheus' own terms.
type reloads struct {
	mu             sync.Mutex // is held while policies are loaded and put in force
	successful, at prometheus.Gauge
}

func newReloads(now time.Time) *reloads {
	r := &reloads{
		successful: prometheus.NewGauge(prometheus.GaugeOpts{Name: "authdemo_policies_last_reload_successful",
			Help: "Whether the last reload of the policies succeeded; if not, those from before are in force."}),
		at: prometheus.NewGauge(prometheus.GaugeOpts{Name: "authdemo_policies_last_reload_success_timestamp_seconds",
			Help: "When the policies in force were loaded."}),
	}
	r.note(nil, now)
	return r
}

func (r *reloads) note(err error, now time.Time) {
	if err != nil {
		r.successful.Set(0)
		return
	}
	r.successful.Set(1)
	r.at.Set(float64(now.Unix()))
}

// Reload puts the policies in force that load gives, all at once, while requests are
// answered. On an error, load's or of what it gives, those from before stay, and the
// metrics say so. See [guard.Guard.SetPolicies] for what becomes of counts.
func (s *Service) Reload(load func() ([]guard.Policy, error)) error {
	s.reloads.mu.Lock()
	defer s.reloads.mu.Unlock()
	policies, err := load()
	if err == nil {
		err = s.setPolicies(policies)
	}
	s.reloads.note(err, s.cfg.Now())
	return err
}

func (s *Service) setPolicies(policies []guard.Policy) error {
	if err := checkActions(policies); err != nil {
		return err
	}
	if err := s.counters.SetPolicies(policies); err != nil { // first: nothing must be counted as unknown
		return err
	}
	return s.guard.SetPolicies(policies)
}
