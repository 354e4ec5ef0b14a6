package guard

import (
	"context"
	"fmt"
	"strings"
)

// Unlock forgets what the rules by account of the given actions (all of them
// if none is given) hold against account, for instance when its owner has
// completed a password reset. An action can be narrowed to one of its rules, as
// in "login/streak". Addresses keep their counts. So do other processes what
// they have counted by themselves while the store was down.
func (g *Guard) Unlock(ctx context.Context, account string, actions ...string) error {
	if g == nil || g.store == nil {
		return fmt.Errorf("%w: the guard is zero", ErrNoPolicy)
	}
	if len(actions) == 0 {
		for action := range g.policies {
			actions = append(actions, action)
		}
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
	for _, name := range actions {
		own, err := g.accountKeys(name, who)
		if err != nil {
			return err
		}
		keys = append(keys, own...)
	}
	if len(keys) == 0 {
		return nil
	}
	if g.local != nil { // what this process has counted while the store was down
		if err := g.local.Forget(ctx, keys); err != nil {
			return g.unavailable(ctx, first, err)
		}
	}
	if err := g.store.Forget(ctx, keys); err != nil {
		return g.unavailable(ctx, first, err)
	}
	for _, name := range actions {
		action, rule, _ := strings.Cut(name, "/")
		g.observe(ctx, Event{Kind: Unlocked, Action: action, Rule: rule, Subject: subjectOf(keys[0])})
	}
	return nil
}

// accountKeys are the store keys of an account in the rules that name means: an
// action, or action/rule.
func (g *Guard) accountKeys(name string, who identity) ([]string, error) {
	action, rule, one := strings.Cut(name, "/")
	p, err := g.policy(action)
	if err != nil {
		return nil, err
	}
	var limits []ruleLimit
	for _, l := range p.limits {
		if p.kinds[l.kind].kind == kindAccount && (!one || p.rules[l.rule].Name == rule) {
			limits = append(limits, l)
		}
	}
	if len(limits) == 0 {
		if one {
			return nil, fmt.Errorf("guard: %s has no rule %q by account", action, rule)
		}
		return nil, nil
	}
	pass, err := newPass(p, limits, g.hash.subjects(nil, p.kinds, &Attempt{}, &who), 1)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(pass.charges))
	for i := range pass.charges {
		keys[i] = pass.charges[i].Key
	}
	return keys, nil
}
