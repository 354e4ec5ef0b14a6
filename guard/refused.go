package guard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"authguard/limiter"
)

// ErrNoIndex reports a store that keeps no lists of whom it refuses, such as
// Memcached: there, one can only ask about a subject by name ([Guard.Inspect]).
var ErrNoIndex = errors.New("guard: the store keeps no index of refused subjects")

// A Refusal is a subject that a limit refuses at present.
type Refusal struct {
	Status

	// Name is the account, address or other subject as the guard knew it. It is
	// empty for API keys, for totals, and where the note of it cannot be read.
	Name string
}

// Refused lists subjects that are refused at present, at most so many, by rule. It
// asks the store's index for them and, for each, its limits as they are now.
//
// The index is apart from limits and bounded: of each limit it holds 1,000 subjects
// (see [limiter.Noter] for which ones in a flood). Limits that are whole again
// within a minute are not in it, nor what processes have counted by themselves while
// the store was down, nor deny lists.
func (g *Guard) Refused(ctx context.Context, most int) ([]Refusal, error) {
	if g == nil || g.store == nil {
		return nil, fmt.Errorf("%w: the guard is zero", ErrNoPolicy)
	}
	if g.index.noter == nil {
		return nil, ErrNoIndex
	}
	limits := g.listedLimits()
	lists := make([]string, len(limits))
	of := make(map[string]Status, len(limits))
	for i, l := range limits {
		lists[i] = l.tag
		of[l.tag] = l.Status
	}
	notes, err := g.index.noter.Noted(ctx, lists)
	if err != nil {
		return nil, g.unavailable(ctx, "", err)
	}
	notes = slices.DeleteFunc(notes, func(n limiter.Note) bool { return !isKey(n.Key, n.List) })
	var refused []Refusal
	for part := range slices.Chunk(notes, 64) {
		charges := make([]limiter.Charge, len(part))
		for i, n := range part {
			charges[i] = limiter.Charge{Key: n.Key, Limit: of[n.List].Limit, Ask: limiter.Ask{Cost: 1, Member: nobody}}
		}
		if err := g.peekReadable(ctx, &charges, &part); err != nil {
			return nil, g.unavailable(ctx, "", err)
		}
		for i, c := range charges {
			if c.Decision.Allowed {
				continue
			}
			if len(refused) == most {
				return refused, nil
			}
			s := of[part[i].List]
			s.Subject, s.Decision = subjectOf(c.Key), c.Decision
			refused = append(refused, Refusal{s, g.index.name(part[i])})
		}
	}
	return refused, nil
}

// nobody is a member that no limit knows: it is refused if any is.
var nobody = strings.Repeat("\xff", limiter.MemberBytes)

// peekReadable peeks, without the keys that hold nothing of ours.
func (g *Guard) peekReadable(ctx context.Context, charges *[]limiter.Charge, notes *[]limiter.Note) error {
	for len(*charges) > 0 {
		err := g.store.Peek(ctx, *charges)
		var key *limiter.ChargeError
		if !errors.As(err, &key) || key.Index < 0 || key.Index >= len(*charges) {
			return err
		}
		*charges = slices.Delete(*charges, key.Index, key.Index+1)
		*notes = slices.Delete(*notes, key.Index, key.Index+1)
	}
	return nil
}

// listedLimit is a limit that has a list.
type listedLimit struct {
	tag string
	Status
}

// listedLimits are all that can refuse, each once, by action.
func (g *Guard) listedLimits() []listedLimit {
	var all []listedLimit
	seen := map[string]bool{}
	policies := g.policies()
	for _, action := range slices.Sorted(maps.Keys(policies)) {
		p := policies[action]
		for _, l := range p.limits {
			r, tag := &p.rules[l.rule], string(l.key.tag[:])
			if seen[tag] || l.advisory > 0 { // which refuses nobody
				continue
			}
			seen[tag] = true
			s := Status{Action: p.action, Rule: r.Name, By: r.By, Clients: r.Clients, Effect: p.effect(&l), Limit: l.limit}
			if l.rule >= p.own {
				s.Action = "" // a block is of every action
			}
			all = append(all, listedLimit{tag, s})
		}
	}
	return all
}

// isKey reports that a note's key is one of its list's. Who can write to the store
// could have put anything there.
func isKey(key, list string) bool {
	return len(key) == keyLen && strings.HasPrefix(key, keyPrefix) && listOf(key) == list
}
