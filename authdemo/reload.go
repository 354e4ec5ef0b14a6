package authdemo

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"authguard/guard"
)

// reloads tell how the last reload of the policies went, in Prometheus' own terms.
type reloads struct {
	mu             sync.Mutex  // is held while policies and lists are loaded and put in force
	lists          guard.Lists // in force
	successful, at prometheus.Gauge
}

func newReloads(lists guard.Lists, now time.Time) *reloads {
	r := &reloads{
		lists: lists,
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

// Reload puts the policies and lists in force that load gives, while requests are
// answered. On an error, load's or of what it gives, those from before stay, and the
// metrics say so. See [guard.Guard.SetPolicies] for what becomes of counts.
func (s *Service) Reload(load func() ([]guard.Policy, guard.Lists, error)) error {
	s.reloads.mu.Lock()
	defer s.reloads.mu.Unlock()
	policies, lists, err := load()
	if err == nil {
		err = s.setLimits(policies, lists)
	}
	s.reloads.note(err, s.cfg.Now())
	return err
}

func (s *Service) setLimits(policies []guard.Policy, lists guard.Lists) error {
	before := s.reloads.lists
	if err := s.guard.SetLists(lists); err != nil {
		return err
	}
	if err := s.setPolicies(policies); err != nil {
		return errors.Join(err, s.guard.SetLists(before)) // which were in force: never fails
	}
	s.reloads.lists = lists
	return nil
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
