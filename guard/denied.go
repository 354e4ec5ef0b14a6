package guard

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Denied is the error of an attempt that is refused. It says what a client may
// know: which rules refuse and how long to wait.
type Denied struct {
	Action string

	// Rules are the names of the rules that refuse, each once, the one with the
	// longest wait first.
	Rules []string

	// RetryAfter is how long to wait until none of them refuses, if nothing
	// else is charged meanwhile. It is exact to the microsecond; round it up.
	RetryAfter time.Duration

	// Locked says that waiting will not help: only recovery opens the account.
	// The same is said of accounts that do not exist.
	Locked bool

	// Challenge, if not nil, is what the client may solve to have the attempt asked
	// about once more, by the rules that no challenge lifts.
	Challenge *Puzzle

	pass *Pass
}

// Error is for instance "guard: login/account refuses; retry after 14m58.2s".
func (d *Denied) Error() string {
	rule := "zero Denied"
	if len(d.Rules) > 0 {
		rule = d.Rules[0]
	}
	return fmt.Sprintf("guard: %s/%s refuses; retry after %v", d.Action, rule, d.RetryAfter)
}

// Limits tell where the limits stand; see [Pass.Limits]. What a store left unasked,
// because another limit was known to refuse, is left out.
func (d *Denied) Limits() []Status {
	if d.pass == nil {
		return nil
	}
	return statuses(d.pass, showing)
}

func newDenied(p *Pass) *Denied {
	d := &Denied{Action: p.policy.action, Rules: make([]string, 0, 1), pass: p}
	for i := range p.charges {
		c := &p.charges[i]
		if c.Advisory > 0 || c.Decision.Allowed {
			continue
		}
		name := p.rule(i).Name
		longest := c.Decision.RetryAfter > d.RetryAfter || len(d.Rules) == 0
		d.RetryAfter = max(d.RetryAfter, c.Decision.RetryAfter)
		d.Locked = d.Locked || c.Decision.Locked
		d.Rules = addRule(d.Rules, name, longest)
	}
	return d
}

// addRule adds name to rules if it is not there; first moves it to the front.
func addRule(rules []string, name string, first bool) []string {
	at := len(rules)
	for i, r := range rules {
		if r == name {
			at = i
		}
	}
	if at == len(rules) {
		rules = append(rules, name)
	}
	if first {
		copy(rules[1:at+1], rules[:at])
		rules[0] = name
	}
	return rules
}

// observeDenials reports each rule of an advisory group (0: the vote) that denies.
func (g *Guard) observeDenials(ctx context.Context, p *Pass, group int) {
	if g.observer == nil {
		return
	}
	var next Event // told when it is known whether more follow
	for i := range p.charges {
		c := &p.charges[i]
		if c.Advisory != group || c.Decision.Allowed {
			continue
		}
		r := p.rule(i)
		if next.Rule == r.Name { // whose limits stand side by side
			next.RetryAfter = max(next.RetryAfter, c.Decision.RetryAfter)
			continue
		}
		if next.Kind != 0 {
			next.More = true
			g.observe(ctx, next)
		}
		next = Event{
			Kind:       denialKind(r.Effect, group),
			Action:     p.policy.action,
			Rule:       r.Name,
			Subject:    strings.Clone(subjectOf(p.charges[p.present(i)].Key)), // who keeps it keeps no pass
			RetryAfter: c.Decision.RetryAfter,
		}
	}
	if next.Kind != 0 {
		g.observe(ctx, next)
	}
}

func denialKind(e Effect, group int) EventKind {
	switch {
	case group == 0:
		return Refused
	case e == Silent:
		return Silenced
	}
	return Observed
}

// subjectOf is the subject's hash in a store key.
func subjectOf(key string) string { return key[len(keyPrefix) : len(keyPrefix)+subjectLen] }

func (g *Guard) observe(ctx context.Context, e Event) {
	if g.observer != nil {
		g.observer.Observe(ctx, e)
	}
}
