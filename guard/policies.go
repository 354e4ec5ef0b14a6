package guard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// policies are those that a guard applies at one time, made ready. They are
// replaced as a whole and never changed.
type policies struct {
	version uint64
	of      map[string]*policy // by action
}

// SetPolicies replaces all policies at once. If they cannot be, the error says why
// and those in force stay. An action cannot be dropped while the program runs:
// all its attempts would be refused.
//
// An attempt is decided, waits and is settled under the policies that were in
// force when it was checked. Limits keep what they have counted if their rule's
// name, their law and their place in the rule stay; new numbers are applied to old
// counts, and old and new numbers in turns admit no more than the larger do. What
// belongs to no limit any more stays in the store until it ages out.
//
// It is safe for concurrent use with everything else.
func (g *Guard) SetPolicies(all []Policy) error {
	if g == nil || g.store == nil {
		return fmt.Errorf("%w: the guard is zero", ErrNoPolicy)
	}
	next := &policies{version: 1, of: make(map[string]*policy, len(all))}
	for _, p := range all {
		if err := p.Validate(); err != nil {
			return err
		}
		if next.of[p.Action] != nil {
			return fmt.Errorf("guard: two policies for action %q", p.Action)
		}
		next.of[p.Action] = compile(p, g.hashes, g.instances, g.challenger != nil)
	}
	if err := checkShared(all); err != nil {
		return err
	}
	g.setting.Lock()
	defer g.setting.Unlock()
	if now := g.inForce.Load(); now != nil {
		for _, action := range slices.Sorted(maps.Keys(now.of)) {
			if next.of[action] == nil {
				return fmt.Errorf("%w %q, which cannot be dropped while attempts at it are checked", ErrNoPolicy, action)
			}
		}
		next.version = now.version + 1
	}
	g.inForce.Store(next)
	return nil
}

// Policies are those that the guard applies, sorted by action.
func (g *Guard) Policies() []Policy {
	of := g.policies()
	all := make([]Policy, 0, len(of))
	for _, p := range of {
		all = append(all, Policy{Action: p.action, Rules: slices.Clone(p.rules[:p.own])})
	}
	slices.SortFunc(all, func(a, b Policy) int { return cmp.Compare(a.Action, b.Action) })
	return all
}

// PoliciesVersion grows when the policies are replaced, so that whoever prepares
// something by them, as package httpguard does fields, can tell when to do it anew.
func (g *Guard) PoliciesVersion() uint64 {
	if g == nil || g.inForce.Load() == nil {
		return 0
	}
	return g.inForce.Load().version
}

// policies are those in force, by action.
func (g *Guard) policies() map[string]*policy {
	if g == nil {
		return nil
	}
	if p := g.inForce.Load(); p != nil {
		return p.of
	}
	return nil
}

// policy is the one in force for an action.
func (g *Guard) policy(action string) (*policy, error) {
	if p := g.policies()[action]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%w: %q", ErrNoPolicy, action)
}
