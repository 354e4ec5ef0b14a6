package guard

import (
	"cmp"
	"slices"
)

// Policies are those that the guard applies, sorted by action.
func (g *Guard) Policies() []Policy {
	if g == nil {
		return nil
	}
	all := make([]Policy, 0, len(g.policies))
	for _, p := range g.policies {
		all = append(all, Policy{Action: p.action, Rules: slices.Clone(p.rules)})
	}
	slices.SortFunc(all, func(a, b Policy) int { return cmp.Compare(a.Action, b.Action) })
	return all
}
