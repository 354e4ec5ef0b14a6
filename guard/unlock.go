package guard

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Unlock forgets what the rules by account of the given actions (all of them
// if none is given) hold against account, for instance when its owner has
// completed a password reset. An action can be narrowed to one of its rules, as
// in "login/streak". Addresses keep their counts, and a block stands ([Guard.Unblock]).
// So do other processes what they have counted by themselves while the store was down.
func (g *Guard) Unlock(ctx context.Context, account string, actions ...string) error {
	return g.forget(ctx, account, actions, func(who identity) []identity { return []identity{who} })
}

// Erase forgets all that the store keeps under account's name, for an owner who has
// the right to be forgotten: what Unlock forgets in all actions and, where
// Config.Resolve knows an id, also what was counted under the name before, when
// there was no such account. Erase an account before the resolver forgets it. A
// block stands, and with it the name, sealed, in the index: [Guard.Unblock] first.
//
// What counts an account together with something else (an address, a device, an API
// key) is kept under a keyed hash of that, which nobody can find by the account; it
// ages out with its window, and so does a sealed note of it in the index.
func (g *Guard) Erase(ctx context.Context, account string) error {
	return g.forget(ctx, account, nil, func(who identity) []identity {
		if who.known.ID == "" {
			return []identity{who}
		}
		return []identity{who, {account: who.account}}
	})
}

// forget drops the keys of all that an account is counted as.
func (g *Guard) forget(ctx context.Context, account string, actions []string, as func(identity) []identity) error {
	if g == nil || g.store == nil {
		return fmt.Errorf("%w: the guard is zero", ErrNoPolicy)
	}
	policies := g.policies()
	if len(actions) == 0 {
		actions = slices.Sorted(maps.Keys(policies))
	}
	first, _, _ := strings.Cut(actions[0], "/")
	if _, err := g.policy(first); err != nil {
		return err // before it is an event's action
	}
	who, err := g.identifyAccount(ctx, first, account)
	if err != nil {
		return err
	}
	if who.account == "" {
		return fmt.Errorf("%w: no account to unlock", ErrMissing)
	}
	var keys []string
	for _, who := range as(who) {
		for _, name := range actions {
			own, err := g.accountKeys(policies, name, who)
			if err != nil {
				return err
			}
			keys = append(keys, own...)
		}
	}
	if len(keys) == 0 {
		return nil
	}
	if err := g.local.Forget(ctx, keys); err != nil { // what this process has counted while the store was down
		return g.unavailable(ctx, first, err)
	}
	if err := g.store.Forget(ctx, keys); err != nil {
		return g.unavailable(ctx, first, err)
	}
	g.index.strike(ctx, keys)
	for _, name := range actions {
		action, rule, _ := strings.Cut(name, "/")
		g.observe(ctx, Event{Kind: Unlocked, Action: action, Rule: rule, Subject: subjectOf(keys[0])})
		g.records.unlocked(&who, action, rule)
	}
	return nil
}

// accountKeys are the store keys of an account in the rules that name means: an
// action, or action/rule.
func (g *Guard) accountKeys(policies map[string]*policy, name string, who identity) ([]string, error) {
	action, rule, one := strings.Cut(name, "/")
	p := policies[action]
	if p == nil {
		return nil, fmt.Errorf("%w: %q", ErrNoPolicy, action)
	}
	var limits []ruleLimit
	for _, l := range p.limits {
		if l.rule < p.own && p.kinds[l.kind].kind == kindAccount && (!one || p.rules[l.rule].Name == rule) {
			limits = append(limits, l)
		}
	}
	if len(limits) == 0 {
		if one {
			return nil, fmt.Errorf("%w: %s has no rule %q by account", ErrNoPolicy, action, rule)
		}
		return nil, nil
	}
	pass, err := newPass(p, limits, g.subjects(nil, p, &Attempt{}, &who), 1)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(pass.charges))
	for i := range pass.charges {
		keys[i] = pass.charges[i].Key
	}
	return keys, nil
}
