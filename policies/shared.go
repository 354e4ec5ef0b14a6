package policies

import (
	"slices"

	"authguard/guard"
)

// sharing is the rule that was the first to use a name of shared state.
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
	first, ok := r.shared[rr.rule.Shared]
	n := rr.seen["shared"]
	switch {
	case !ok:
		r.shared[rr.rule.Shared] = sharing{action, rr.where, rr.rule}
	case first.action == action:
		r.at(n, "%s: shared %s is used by %s already, and is for rules of different actions", rr.where, describe(n), first.where)
	case first.rule.By != rr.rule.By || first.rule.Members != rr.rule.Members || !slices.Equal(first.rule.Limits, rr.rule.Limits):
		r.at(n, "%s: shared %s is used by %s with another by, distinct or limit", rr.where, describe(n), first.where)
	}
}
