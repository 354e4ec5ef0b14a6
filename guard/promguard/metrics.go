package promguard

import (
	"context"
	"maps"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"authguard/guard"
)

// Outcomes of authguard_attempts_total.
const (
	admitted    = "admitted"
	refused     = "refused"
	unavailable = "unavailable"
)

// Outcomes of authguard_settled_total.
const (
	succeeded = "succeeded"
	failed    = "failed"
	cancelled = "cancelled"
)

// Outcomes of authguard_challenges_total.
const (
	solved     = "solved"
	unsolved   = "unsolved"
	unverified = "unverified"
)

// other stands for an action or rule that the policies do not name. No policy can
// have this name.
const other = "(other)"

// Metrics counts the decisions of a guard. It is a [guard.Observer] and a
// [prometheus.Collector], safe for concurrent use. Make it with [New].
type Metrics struct {
	setting sync.Mutex
	effects atomic.Pointer[map[string]map[string]string] // of each rule of each action

	attempts   *prometheus.CounterVec
	denials    *prometheus.CounterVec
	settled    *prometheus.CounterVec
	challenges *prometheus.CounterVec

	// By action alone.
	abandoned, unlocks, unaddressed, faults, degraded *prometheus.CounterVec

	blocks  *prometheus.CounterVec // by what an operator did
	unnoted *prometheus.CounterVec
}

var (
	_ guard.Observer       = (*Metrics)(nil)
	_ prometheus.Collector = (*Metrics)(nil)
)

// New makes Metrics with a series for everything that can become of an attempt
// under policies, which are those of the guard that they observe. What a guard
// with other policies decides is counted under the action or rule "(other)". The
// error is that of [guard.Policy.Validate].
func New(policies []guard.Policy) (*Metrics, error) {
	m := &Metrics{
		attempts:    counter("attempts", "Attempts by what was decided; those whose client left before are not counted.", "action", "outcome"),
		denials:     counter("denials", "Denials by rule; an attempt can be denied by several, and is refused by those with effect deny or challenge.", "action", "rule", "effect"),
		settled:     counter("settled", "Admitted attempts by how they ended; those never settled are missing.", "action", "outcome"),
		challenges:  counter("challenges", "Answers to challenges by what they were worth; unverified ones are faults of the challenger.", "action", "outcome"),
		abandoned:   counter("abandoned_refunds", "Refunds that came too late and were not made.", "action"),
		unlocks:     counter("unlocks", "Accounts whose counts were cleared.", "action"),
		unaddressed: counter("unaddressed", "Attempts that came without a client address.", "action"),
		faults:      counter("faults", "Failures of the store or the resolver.", "action"),
		blocks:      counter("blocks", "Accounts and addresses that operators blocked or unblocked.", "change"),
		unnoted:     counter("unnoted", "Notes of who is refused that could not be written; no limit is concerned."),
		degraded:    counter("degraded", "Attempts decided without the store, as their rules say for outages.", "action"),
	}
	for _, change := range []guard.EventKind{guard.Blocked, guard.Unblocked} {
		m.blocks.WithLabelValues(change.String())
	}
	m.unnoted.WithLabelValues()
	if err := m.SetPolicies(policies); err != nil {
		return nil, err
	}
	return m, nil
}

// SetPolicies adds the series of policies that take the place of others
// ([guard.Guard.SetPolicies]); call it before they are in force, so that nothing is
// counted as "(other)". What earlier policies named is still counted under its name:
// attempts may be on their way. The error is that of [guard.Policy.Validate]; then
// nothing was added.
func (m *Metrics) SetPolicies(policies []guard.Policy) error {
	for _, p := range policies {
		if err := p.Validate(); err != nil {
			return err
		}
	}
	m.setting.Lock()
	defer m.setting.Unlock()
	effects := make(map[string]map[string]string, len(policies))
	if known := m.effects.Load(); known != nil {
		for action, rules := range *known {
			effects[action] = maps.Clone(rules)
		}
	}
	for _, p := range policies {
		if effects[p.Action] == nil {
			effects[p.Action] = make(map[string]string, len(p.Rules))
		}
		for _, own := range []string{guard.BlockedRule, guard.DeniedRule} {
			effects[p.Action][own] = guard.Deny.String() // with a series from the first denial on
		}
		for _, outcome := range []string{admitted, refused, unavailable} {
			m.attempts.WithLabelValues(p.Action, outcome)
		}
		for _, outcome := range []string{succeeded, failed, cancelled} {
			m.settled.WithLabelValues(p.Action, outcome)
		}
		for _, outcome := range []string{solved, unsolved, unverified} {
			m.challenges.WithLabelValues(p.Action, outcome)
		}
		for _, c := range []*prometheus.CounterVec{m.abandoned, m.unlocks, m.unaddressed, m.faults, m.degraded} {
			c.WithLabelValues(p.Action)
		}
		for _, r := range p.Rules {
			effects[p.Action][r.Name] = r.Effect.String()
			m.denials.WithLabelValues(p.Action, r.Name, r.Effect.String())
		}
	}
	m.effects.Store(&effects)
	return nil
}

func counter(name, help string, labels ...string) *prometheus.CounterVec {
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "authguard_" + name + "_total", Help: help}, labels)
}

// Observe implements [guard.Observer].
func (m *Metrics) Observe(_ context.Context, e guard.Event) {
	rules, known := (*m.effects.Load())[e.Action]
	action := e.Action
	if !known {
		action = other
	}
	switch e.Kind {
	case guard.Admitted:
		m.attempts.WithLabelValues(action, admitted).Inc()
	case guard.Refused, guard.Silenced, guard.Observed:
		rule, effect := e.Rule, rules[e.Rule]
		if effect == "" {
			rule, effect = other, other
		}
		m.denials.WithLabelValues(action, rule, effect).Inc()
		if e.Kind == guard.Refused && !e.More {
			m.attempts.WithLabelValues(action, refused).Inc()
		}
	case guard.Unavailable:
		m.attempts.WithLabelValues(action, unavailable).Inc()
	case guard.Succeeded:
		m.settled.WithLabelValues(action, succeeded).Inc()
	case guard.Failed:
		m.settled.WithLabelValues(action, failed).Inc()
	case guard.Cancelled:
		m.settled.WithLabelValues(action, cancelled).Inc()
	case guard.Solved:
		m.challenges.WithLabelValues(action, solved).Inc()
	case guard.Unsolved:
		m.challenges.WithLabelValues(action, unsolved).Inc()
	case guard.Unverified:
		m.challenges.WithLabelValues(action, unverified).Inc()
	case guard.Abandoned:
		m.abandoned.WithLabelValues(action).Inc()
	case guard.Unlocked:
		m.unlocks.WithLabelValues(action).Inc()
	case guard.Unaddressed:
		m.unaddressed.WithLabelValues(action).Inc()
	case guard.Broken:
		m.faults.WithLabelValues(action).Inc()
	case guard.Blocked, guard.Unblocked:
		m.blocks.WithLabelValues(e.Kind.String()).Inc()
	case guard.Unnoted:
		m.unnoted.WithLabelValues().Inc()
	case guard.Degraded:
		m.degraded.WithLabelValues(action).Inc()
	}
}

func (m *Metrics) vectors() []*prometheus.CounterVec {
	return []*prometheus.CounterVec{m.attempts, m.denials, m.settled, m.challenges, m.abandoned, m.unlocks, m.unaddressed, m.faults, m.degraded, m.blocks, m.unnoted}
}

// Describe implements [prometheus.Collector].
func (m *Metrics) Describe(to chan<- *prometheus.Desc) {
	for _, v := range m.vectors() {
		v.Describe(to)
	}
}

// Collect implements [prometheus.Collector].
func (m *Metrics) Collect(to chan<- prometheus.Metric) {
	for _, v := range m.vectors() {
		v.Collect(to)
	}
}
