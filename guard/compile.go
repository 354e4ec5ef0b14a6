package guard

import (
	"slices"

	"authguard/limiter"
)

// policy is a Policy made ready for one store call an attempt.
type policy struct {
	action    string
	rules     []Rule
	kinds     []subjectKind // each subject once
	limits    []ruleLimit   // of all rules, in order
	anonymous []ruleLimit   // those of an attempt without an account

	countsAccounts, countsAddresses bool
}

// ruleLimit is one limit of one rule.
type ruleLimit struct {
	rule     int // index into rules
	kind     int // index into kinds
	limit    limiter.Limit
	tag      string
	advisory int
}

// compile lays out the limits of a valid p.
func compile(p Policy, hash *hasher) *policy {
	c := &policy{action: p.Action, rules: slices.Clone(p.Rules)}
	advisory := 0
	for i, r := range p.Rules {
		kind, _ := r.By.parse() // p is valid
		k := slices.Index(c.kinds, kind)
		if k < 0 {
			k = len(c.kinds)
			c.kinds = append(c.kinds, kind)
		}
		group := 0
		if r.Effect != Deny {
			advisory++
			group = advisory
		}
		for n, l := range r.Limits {
			limit := ruleLimit{
				rule: i, kind: k, limit: l,
				tag:      hash.tag(p.Action, r.Name, n, l.Law()),
				advisory: group,
			}
			c.limits = append(c.limits, limit)
			if !kind.ofAccount() {
				c.anonymous = append(c.anonymous, limit)
			}
		}
		c.countsAccounts = c.countsAccounts || kind.ofAccount()
		c.countsAddresses = c.countsAddresses || kind.ofAddress()
	}
	return c
}
