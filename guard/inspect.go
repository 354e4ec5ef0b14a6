package guard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"authguard/limiter"
)

// Status is where one limit of one rule stands for one subject.
type Status struct {
	Action   string
	Rule     string // name in its policy
	By       By
	Clients  Clients // whom the rule counts
	Effect   Effect  // here: a challenge that nobody can pose is Deny, or Observe
	Limit    limiter.Limit
	Subject  string           // keyed hash of the subject, as in an [Event]
	Decision limiter.Decision // of an attempt of cost 1 (or Attempt.Cost) now
	Lifted   bool             // by the allow list: such an attempt is not charged to the rule
}

// Used is how many units stand charged.
func (s Status) Used() int64 { return s.Decision.Limit - s.Decision.Remaining }

// Inspect explains what Check would say to a, limit by limit, and charges
// nothing. Rules that count by something that a does not have are left out, so
// that an operator can ask about an account alone, or an address alone. With a
// device cookie of the account, a's limits are those of trusted clients; without
// one, the answer has those of both classes, and Status.Clients tells them apart.
// A block that stands has the rule [BlockedRule], and an entry of a deny list, which comes first,
// [DeniedRule].
func (g *Guard) Inspect(ctx context.Context, a Attempt) ([]Status, error) {
	p, err := g.policy(a.Action)
	if err != nil {
		return nil, err
	}
	who, err := g.identify(ctx, p, &a)
	if err != nil {
		return nil, err
	}
	subjects := g.subjects(nil, p, &a, &who)
	all := p.limits
	if who.trusted {
		all = p.trusted
	}
	var limits []ruleLimit
	for _, l := range all {
		known := subjects[l.subject] != (subjectHash{})
		if p.kinds[l.kind].ofAddress() && !a.IP.IsValid() {
			known = false
		}
		if known {
			limits = append(limits, l)
		}
	}
	if len(limits) == 0 {
		return nil, fmt.Errorf("%w: none of %s's rules counts by what is given", ErrMissing, p.action)
	}
	pass, err := newPass(p, limits, subjects, cmp.Or(a.Cost, 1))
	if err != nil {
		return nil, err
	}
	if err := g.store.Peek(ctx, pass.charges); err != nil {
		var key *limiter.ChargeError
		if errors.As(err, &key) && key.Index >= 0 && key.Index < len(pass.charges) {
			err = fmt.Errorf("rule %s: %w", pass.rule(key.Index).Name, err)
		}
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	found := statuses(pass, func(*limiter.Charge, *Rule) bool { return true })
	if g.lists.Load().allow.has(a.IP) {
		lifted := map[string]bool{}
		for _, l := range pass.limits {
			lifted[p.rules[l.rule].Name] = p.lifts(l)
		}
		for i := range found {
			found[i].Lifted = lifted[found[i].Rule]
		}
	}
	found = slices.DeleteFunc(found, func(s Status) bool { return s.Rule == BlockedRule && s.Decision.Allowed })
	if by := g.deniedBy(&a); by != "" {
		found = slices.Insert(found, 0, Status{
			Action: p.action, Rule: DeniedRule, By: by, Subject: g.listed(by, &a),
			Decision: limiter.Decision{Limit: 1, RetryAfter: listedAgain, ResetAfter: listedAgain, At: g.now().UnixMicro()},
		})
	}
	return found, nil
}

// showing is true for rules whose state a client may see.
func showing(c *limiter.Charge, r *Rule) bool {
	return c.Advisory == 0 && r != &onceRule && r.Name != BlockedRule
}

func statuses(p *Pass, want func(*limiter.Charge, *Rule) bool) []Status {
	var s []Status
	last := -1 // whose status is the last of s
	for i := range p.charges {
		r, c, l := p.rule(i), &p.charges[i], &p.limits[i]
		if !want(c, r) || c.Decision.NotAsked() {
			continue
		}
		if l.previous && last >= 0 && p.limits[last].rule == l.rule && p.limits[last].index == l.index {
			// One limit, which is what it leaves under both secrets.
			if d := &s[len(s)-1].Decision; tighter(&c.Decision, d) {
				*d = c.Decision
			}
			continue
		}
		last = i
		s = append(s, Status{
			Action: p.policy.action, Rule: r.Name, By: r.By, Clients: r.Clients, Effect: p.policy.effect(l), Limit: c.Limit,
			Subject: subjectOf(p.charges[p.present(i)].Key), Decision: c.Decision,
		})
	}
	return s
}

// tighter reports that a leaves less than b.
func tighter(a, b *limiter.Decision) bool {
	switch {
	case a.Allowed != b.Allowed:
		return !a.Allowed
	case !a.Allowed && a.RetryAfter != b.RetryAfter:
		return a.RetryAfter > b.RetryAfter
	}
	return a.Remaining < b.Remaining
}
