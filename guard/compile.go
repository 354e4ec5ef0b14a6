package guard

import (
	"slices"

	"authguard/limiter"
)

// policy is a Policy made ready for one store call an attempt.
type policy struct {
	action    string
	rules     []Rule
	own       int           // rules[:own] are those of the Policy, the others those of blocks
	kinds     []subjectKind // each subject once
	limits    []ruleLimit   // of all rules, in order
	untrusted []ruleLimit   // those of an untrusted client
	anonymous []ruleLimit   // those of an attempt without an account
	trusted   []ruleLimit   // those of a trusted client

	countsAccounts  bool // or tells clients apart by their account
	countsAddresses bool
}

// ruleLimit is one limit of one rule.
type ruleLimit struct {
	rule     int  // index into rules
	index    int  // among the rule's limits
	kind     int  // index into kinds
	subject  int  // index into an attempt's subjects, see Guard.subjects
	members  int  // index into them of what is counted, or -1
	previous bool // under the previous secret; it stands after its like under the present one
	limit    limiter.Limit
	local    limiter.Limit // this process's share, if the rule counts locally while the store fails
	key      storeKey      // but for the subject
	advisory int
	failures bool // it counts failures: a success gives its charge back
	clears   bool // and more than its charge
	waited   bool // the first of its subject that attempts may wait for; see wait.go
	lifted   int  // its advisory group once a challenge is solved; 0 if none lifts it
}

// sharedScopes take the place of an action where actions share state: no action
// has such a name. Each class of clients has state of its own.
var sharedScopes = [...]string{AllClients: "", UntrustedClients: "untrusted clients", TrustedClients: "trusted clients"}

// compile lays out the limits of a valid p for one of so many instances, once for
// each secret. wired says that challenges can be posed.
func compile(p Policy, hashes []*hasher, instances int64, wired bool) *policy {
	c := &policy{action: p.Action, rules: slices.Clone(p.Rules), own: len(p.Rules)}
	c.findKinds()
	advisory := 0
	for i, r := range p.Rules {
		kind, _ := r.By.parse()
		k, members := c.kind(kind), -1
		if r.Members != "" {
			m, _ := r.Members.parse()
			members = c.kind(m)
		}
		scope, name := p.Action, r.Name
		if r.Shared != "" {
			scope, name = sharedScopes[r.Clients], r.Shared
		}
		group, lifted := 0, 0
		switch votes := r.votes(wired); {
		case !votes:
			advisory++
			group = advisory
		case r.Effect == Challenge && wired:
			advisory++
			lifted = advisory
		}
		for n, l := range r.Limits {
			for secret, hash := range hashes {
				limit := ruleLimit{
					rule: i, index: n, kind: k, limit: l,
					subject: secret*len(c.kinds) + k, members: members,
					previous: secret > 0,
					key:      hash.key(scope, name, n, l.Law()),
					advisory: group, lifted: lifted,
					failures: r.Counts == Failures,
				}
				_, limit.clears = l.(limiter.SuccessClearer)
				if members >= 0 {
					limit.members += secret * len(c.kinds)
				}
				if r.OnOutage == OutageLocal {
					limit.local = l.(limiter.Sharer).Share(instances)
				}
				c.add(limit, r.Clients, kind)
			}
		}
	}
	c.addBlocks(hashes)
	for _, limits := range [][]ruleLimit{c.untrusted, c.anonymous, c.trusted} {
		c.markWaited(limits)
	}
	return c
}

// findKinds finds all kinds of subjects, those that can be blocked included.
func (c *policy) findKinds() {
	for _, r := range c.rules {
		kind, _ := r.By.parse() // the policy is valid
		c.kind(kind)
		counts := kind.ofAccount()
		if r.Members != "" {
			m, _ := r.Members.parse()
			c.kind(m)
			counts = counts || m.ofAccount()
		}
		c.countsAccounts = c.countsAccounts || counts || r.Clients != AllClients
		c.countsAddresses = c.countsAddresses || kind.ofAddress()
	}
	c.kind(blockedAddress)
	if c.countsAccounts {
		c.kind(blockedAccount)
	}
}

// effect is what a denial by l does, whether or not challenges can be posed.
func (c *policy) effect(l *ruleLimit) Effect {
	switch e := c.rules[l.rule].Effect; {
	case e != Challenge || l.asks():
		return e
	case l.advisory > 0:
		return Observe
	}
	return Deny
}

// add has a limit count for the clients of its rule.
func (c *policy) add(l ruleLimit, of Clients, kind subjectKind) {
	c.limits = append(c.limits, l)
	if of.have(false) {
		c.untrusted = append(c.untrusted, l)
		if !kind.ofAccount() {
			c.anonymous = append(c.anonymous, l)
		}
	}
	if of.have(true) {
		c.trusted = append(c.trusted, l)
	}
}

// markWaited finds the limits by whose subjects attempts wait for each other.
func (c *policy) markWaited(limits []ruleLimit) {
	kinds := map[int]bool{}
	for i := range limits {
		l := &limits[i]
		if l.failures && !l.previous && l.advisory == 0 && !c.rules[l.rule].asksAll() && !kinds[l.kind] && len(kinds) < waitedSubjects {
			kinds[l.kind], l.waited = true, true
		}
	}
}

// kind is the index of k among the kinds of subjects.
func (c *policy) kind(k subjectKind) int {
	i := slices.Index(c.kinds, k)
	if i < 0 {
		i = len(c.kinds)
		c.kinds = append(c.kinds, k)
	}
	return i
}
