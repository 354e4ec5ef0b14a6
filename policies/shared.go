package policies

import (
	"slices"

	"authguard/guard"
)

// sharedState is what rules share: each class of clients has its own.
type sharedState struct {
	name    string
	clients guard.Clients
}

// sharing is the rule that was the first to use a shared state.
type sharing struct {
	action, where string
	rule          guard.Rule
}

// sharedAgree notes rules that share state and would not count alike. That of
// other files is up to guard.New, which sees them all.
func (r *reader) sharedAgree(action string, rr *ruleReader) {
	if rr.rule.Shared == "" {
		return
	}
	state := sharedState{rr.rule.Shared, rr.rule.Clients}
	first, ok := r.shared[state]
	n := rr.seen["shared"]
	for other := range guard.TrustedClients + 1 {
		if o, ok := r.shared[sharedState{rr.rule.Shared, other}]; ok && other != state.clients && (other == guard.AllClients || state.clients == guard.AllClients) {
			r.at(n, "%s: shared %s is used by %s for %v clients, and %v clients count apart", rr.where, describe(n), o.where, other, state.clients)
			return
		}
	}
	switch {
	case !ok:
		r.shared[state] = sharing{action, rr.where, rr.rule}
	case first.action == action:
		r.at(n, "%s: shared %s is used by %s already, and is for rules of different actions", rr.where, describe(n), first.where)
	case first.rule.By != rr.rule.By || first.rule.Members != rr.rule.Members || !slices.Equal(first.rule.Limits, rr.rule.Limits):
		r.at(n, "%s: shared %s is used by %s with another by, distinct or limit", rr.where, describe(n), first.where)
	}
}
