package guard

import (
	"errors"
	"fmt"
	"slices"

	"authguard/limiter"
)

// A Policy says which rules an action's attempts are charged to. It is plain
// data: package policies reads it from files, and [New] checks it.
type Policy struct {
	Action string // what is attempted: "login", "password_reset"; a-z, 0-9 and _, at most 32 bytes
	Rules  []Rule
}

// A Rule is one or more limits on one subject of an attempt.
type Rule struct {
	// Name of the rule, unique in its policy: a-z, 0-9 and _, at most 32 bytes.
	// A refusal shows it, as in "login/account".
	Name string

	// By says whose attempts are counted together.
	By By

	// Limits are charged together: all of them admit, or the rule denies.
	// Changing their numbers keeps what they have counted; changing their law
	// or their order starts anew.
	Limits []limiter.Limit

	// Members says what is counted by limits that count different members
	// ([limiter.Distinct]), for instance ByAccount: how many accounts somebody
	// tries. It is empty for all others.
	Members By

	// Shared names state that several actions' rules share, because they check
	// the same secret: rules with the same Shared, and limits of the same laws
	// in the same order, count as one. Rules for different Clients do not.
	// Empty: the rule's state is its own.
	Shared string

	// Clients says which class of clients the rule counts.
	Clients Clients

	// Counts says whether a success stays charged.
	Counts Counts

	// Effect says what happens when the rule denies.
	Effect Effect

	// OnOutage says what happens while the store cannot answer.
	OnOutage Outage
}

// Counts is what a rule counts.
type Counts uint8

const (
	// Attempts stay charged however they end. It is the zero value: the strict one.
	Attempts Counts = iota

	// Failures stay charged; a success is given back. The charge is made
	// before the secret is compared all the same, so that no number of
	// attempts in flight gets past the limit.
	Failures
)

func (c Counts) String() string {
	switch c {
	case Attempts:
		return "attempts"
	case Failures:
		return "failures"
	}
	return fmt.Sprintf("Counts(%d)", uint8(c))
}

// Effect is what a rule does when it denies.
type Effect uint8

const (
	// Deny refuses the attempt. It is the zero value.
	Deny Effect = iota

	// Challenge refuses the attempt with a [Puzzle] to solve, which lifts this
	// rule and others like it for one attempt, and no other rule. Without a
	// Config.Challenger there is none to ask for: then a rule by [Global] refuses
	// nothing, as Observe, since it would keep everybody out, and any other denies.
	Challenge

	// Silent lets the attempt pass with [Pass.Silenced] true: the application
	// answers as usual and does nothing. So a limit on mails to one address
	// shows nobody that it was reached.
	Silent

	// Observe counts like Deny, reports to the [Observer] and refuses nothing:
	// for trying out a rule on live traffic.
	Observe
)

func (e Effect) String() string {
	switch e {
	case Deny:
		return "deny"
	case Challenge:
		return "challenge"
	case Silent:
		return "silent"
	case Observe:
		return "observe"
	}
	return fmt.Sprintf("Effect(%d)", uint8(e))
}

// votes reports that a denial by r refuses the attempt; wired says that challenges
// can be posed.
func (r *Rule) votes(wired bool) bool {
	return r.Effect == Deny || r.Effect == Challenge && (wired || r.By != Global)
}

// asksAll reports that r asks for a challenge because of what all do together. Of
// those some are always in flight, so that to wait for them to settle helps nobody.
func (r *Rule) asksAll() bool { return r.Effect == Challenge && r.By == Global }

// Validate reports the first thing that makes p no policy, naming the action,
// rule and field.
func (p Policy) Validate() error {
	if err := checkName(p.Action); err != nil {
		return fmt.Errorf("guard: policy action %w", err)
	}
	if len(p.Rules) == 0 {
		return fmt.Errorf("guard: policy %s has no rules", p.Action)
	}
	seen := make(map[string]bool, len(p.Rules))
	limits := 0
	var counted [2]bool // untrusted and trusted clients
	for _, r := range p.Rules {
		if limits += len(r.Limits); limits > maxLimits {
			return fmt.Errorf("guard: policy %s has more than %d limits", p.Action, maxLimits)
		}
		if err := r.Validate(); err != nil {
			return fmt.Errorf("guard: policy %s: %w", p.Action, err)
		}
		if seen[r.Name] {
			return fmt.Errorf("guard: policy %s has two rules named %q", p.Action, r.Name)
		}
		seen[r.Name] = true
		counted[0] = counted[0] || r.Clients.have(false)
		counted[1] = counted[1] || r.Clients.have(true)
	}
	for i, c := range []Clients{UntrustedClients, TrustedClients} {
		if !counted[i] {
			return fmt.Errorf("guard: policy %s has no rule that counts %v clients, so that nothing bounds them", p.Action, c)
		}
	}
	return nil
}

// Validate reports the first thing that makes r no rule.
func (r Rule) Validate() error {
	if err := checkName(r.Name); err != nil {
		return fmt.Errorf("rule name %w", err)
	}
	if r.Name == BlockedRule || r.Name == DeniedRule {
		return fmt.Errorf("rule name %q is the guard's own, want another", r.Name)
	}
	if _, err := r.By.parse(); err != nil {
		return fmt.Errorf("rule %s: By %w", r.Name, err)
	}
	if len(r.Limits) == 0 {
		return fmt.Errorf("rule %s has no limits", r.Name)
	}
	if r.Clients > TrustedClients {
		return fmt.Errorf("rule %s: Clients is %v, want all, untrusted or trusted", r.Name, r.Clients)
	}
	if (r.By == ByDevice || r.Members == ByDevice) && r.Clients != TrustedClients {
		return fmt.Errorf("rule %s counts devices, which only trusted clients have: Clients is %v, want trusted", r.Name, r.Clients)
	}
	if r.Counts > Failures {
		return fmt.Errorf("rule %s: Counts is %v, want attempts or failures", r.Name, r.Counts)
	}
	if r.Effect > Observe {
		return fmt.Errorf("rule %s: Effect is %v, want deny, challenge, silent or observe", r.Name, r.Effect)
	}
	if r.OnOutage > OutageAllow {
		return fmt.Errorf("rule %s: OnOutage is %v, want deny, local or allow", r.Name, r.OnOutage)
	}
	if r.OnOutage == OutageAllow && r.Counts == Failures {
		return fmt.Errorf("rule %s counts failures, so it guards a secret, which no outage may open: OnOutage is allow, want deny or local", r.Name)
	}
	if r.Shared != "" {
		if err := checkName(r.Shared); err != nil {
			return fmt.Errorf("rule %s: Shared %w", r.Name, err)
		}
	}
	for _, l := range r.Limits {
		if l == nil {
			return fmt.Errorf("rule %s has a nil limit", r.Name)
		}
		if err := l.Validate(); err != nil {
			return fmt.Errorf("rule %s: %w", r.Name, err)
		}
		if err := r.suits(l); err != nil {
			return fmt.Errorf("rule %s: %w", r.Name, err)
		}
	}
	return nil
}

// suits reports why l cannot be a limit of a rule like r.
func (r Rule) suits(l limiter.Limit) error {
	if _, exact := l.(limiter.ExactRefunder); r.Counts == Failures && !exact {
		return fmt.Errorf("counts failures, which a %s cannot: its refund is not exact; use a window", l.Law())
	}
	if _, shares := l.(limiter.Sharer); r.OnOutage == OutageLocal && !shares {
		return fmt.Errorf("counts locally in an outage, which a %s cannot: it has no share (limiter.Sharer)", l.Law())
	}
	switch l.(type) {
	case limiter.Block:
		return errors.New("has a block as a limit, which Guard.Block makes")
	case limiter.Backoff:
		if r.Counts != Failures {
			return errors.New("a backoff counts consecutive failures, so Counts must be failures")
		}
	case limiter.Distinct:
		members, err := r.Members.parse()
		if err != nil {
			return fmt.Errorf("field Members %w", err)
		}
		if by, _ := r.By.parse(); by.fixes(members) {
			return fmt.Errorf("counts different members by %s, but one %s has only one %s: it can never deny", r.By, r.By, r.Members)
		}
		return nil
	}
	if r.Members != "" {
		return fmt.Errorf("field Members is %q, but a %s counts no members", r.Members, l.Law())
	}
	return nil
}

// maxLimits bounds the limits of a policy: each costs a place in every check.
const maxLimits = 64

// checkShared reports rules that share state and do not agree on what it is.
func checkShared(policies []Policy) error {
	type owner struct {
		action string
		rule   Rule
	}
	type state struct {
		name    string
		clients Clients
	}
	owners := map[state]owner{}
	for _, p := range policies {
		for _, r := range p.Rules {
			if r.Shared == "" {
				continue
			}
			for other := range TrustedClients + 1 {
				if o, ok := owners[state{r.Shared, other}]; ok && other != r.Clients && (other == AllClients || r.Clients == AllClients) {
					return fmt.Errorf("guard: %s/%s and %s/%s share %q, one for %v and one for %v clients, which count apart", o.action, o.rule.Name, p.Action, r.Name, r.Shared, other, r.Clients)
				}
			}
			s := state{r.Shared, r.Clients}
			o, ok := owners[s]
			switch {
			case !ok:
				owners[s] = owner{p.Action, r}
			case o.action == p.Action:
				return fmt.Errorf("guard: policy %s: rules %s and %s share %q, which is for different actions", p.Action, o.rule.Name, r.Name, r.Shared)
			case o.rule.By != r.By || o.rule.Members != r.Members || !slices.Equal(o.rule.Limits, r.Limits):
				return fmt.Errorf("guard: %s/%s and %s/%s share %q and differ in By, Members or Limits", o.action, o.rule.Name, p.Action, r.Name, r.Shared)
			}
		}
	}
	return nil
}

const maxName = 32

func checkName(s string) error {
	if s == "" {
		return errors.New("is empty")
	}
	if len(s) > maxName {
		return fmt.Errorf("is %d bytes, want at most %d", len(s), maxName)
	}
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' {
			return fmt.Errorf("%q has %q, want only a-z, 0-9 and _", s, c)
		}
	}
	return nil
}
