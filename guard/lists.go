package guard

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// DeniedRule is the rule by which an attempt is refused that a deny list names, as
// in "login/denied". No other rule may have the name.
const DeniedRule = "denied"

// Lists name addresses and accounts once and for all. They are the process's own:
// no store is asked about them, and they hold while it is down.
type Lists struct {
	// DenyAddresses are refused in every action. They win over AllowAddresses.
	DenyAddresses []netip.Prefix

	// DenyAccounts are names that nobody may try, such as root, in every action, in
	// all spellings that are one under [Canonical]. Other names of the same account
	// are not meant.
	DenyAccounts []string

	// AllowAddresses are not counted by rules that count by address alone, such as
	// the office whose people share one. Accounts, devices, codes and totals are
	// counted all the same, and blocks hold.
	AllowAddresses []netip.Prefix
}

// listedAgain is when somebody on a deny list is told to come again: no wait helps.
const listedAgain = time.Hour

// widest is the shortest prefix of an allow list.
const widest = 8

// lists are Lists made ready to be asked.
type lists struct {
	deny, allow prefixSet
	accounts    map[string]bool
}

// Validate reports the first prefix that cannot be on its list.
func (l Lists) Validate() error {
	for field, list := range map[string][]netip.Prefix{"DenyAddresses": l.DenyAddresses, "AllowAddresses": l.AllowAddresses} {
		for _, p := range list {
			if !p.IsValid() {
				return fmt.Errorf("guard: Lists.%s has an invalid prefix", field)
			}
			if p.Addr().Is4In6() {
				return fmt.Errorf("guard: Lists.%s has %v, want IPv4 addresses as IPv4", field, p)
			}
		}
	}
	for _, p := range l.AllowAddresses {
		if p.Bits() < widest {
			return fmt.Errorf("guard: Lists.AllowAddresses has %v: so many would be counted by no rule by address; want at least /%d", p, widest)
		}
	}
	return nil
}

// SetLists replaces the lists at once. If they cannot be, the error says why and
// those in force stay. It is safe for concurrent use with everything else.
func (g *Guard) SetLists(l Lists) error {
	if g == nil || g.store == nil {
		return fmt.Errorf("%w: the guard is zero", ErrNoPolicy)
	}
	next, err := g.newLists(l)
	if err != nil {
		return err
	}
	g.lists.Store(&next)
	return nil
}

func (g *Guard) newLists(l Lists) (lists, error) {
	if err := l.Validate(); err != nil {
		return lists{}, err
	}
	var c lists
	for _, p := range l.AllowAddresses {
		c.allow.add(p)
	}
	for _, p := range l.DenyAddresses {
		c.deny.add(p)
	}
	for i, name := range l.DenyAccounts {
		canonical := g.canonical(name)
		if canonical == "" {
			return lists{}, fmt.Errorf("guard: Lists.DenyAccounts: entry %d is no account name", i)
		}
		if c.accounts == nil {
			c.accounts = map[string]bool{}
		}
		c.accounts[canonical] = true
	}
	return c, nil
}

// denied is the refusal of an attempt that a deny list names, or nil.
func (g *Guard) denied(ctx context.Context, a *Attempt) error {
	by := g.deniedBy(a)
	if by == "" {
		return nil
	}
	g.observe(ctx, Event{Kind: Refused, Action: a.Action, Rule: DeniedRule, By: by, Subject: g.listed(by, a), RetryAfter: listedAgain})
	return &Denied{Action: a.Action, Rules: []string{DeniedRule}, RetryAfter: listedAgain}
}

// deniedBy is what a deny list names of an attempt: ByIP, ByAccount or "".
func (g *Guard) deniedBy(a *Attempt) By {
	switch l := g.lists.Load(); {
	case l.deny.has(a.IP):
		return ByIP
	case len(l.accounts) > 0 && l.accounts[g.canonical(a.Account)]:
		return ByAccount
	}
	return ""
}

// listed is the hash of a subject that a deny list names. An account's is that of
// its name.
func (g *Guard) listed(by By, a *Attempt) string {
	kind, _ := by.parse()
	s := g.hashes[0].subjects(nil, []subjectKind{kind}, a, &identity{account: g.canonical(a.Account)})
	return string(s[0][:])
}

// lifted leaves out the limits that the allow list lifts.
func (p *policy) lifted(limits []ruleLimit) []ruleLimit {
	return slices.DeleteFunc(slices.Clone(limits), p.lifts)
}

// lifts reports that an allow list lifts l: it counts by address alone.
func (p *policy) lifts(l ruleLimit) bool { return l.rule < p.own && p.kinds[l.kind].kind == kindIP }

// prefixSet is a set of prefixes, asked once for each length that is in it.
type prefixSet struct {
	lengths  [2][]int // of IPv4 and IPv6 prefixes
	prefixes map[netip.Prefix]bool
}

func family(a netip.Addr) int {
	if a.Is4() {
		return 0
	}
	return 1
}

func (s *prefixSet) add(p netip.Prefix) {
	if s.prefixes == nil {
		s.prefixes = map[netip.Prefix]bool{}
	}
	p = p.Masked()
	s.prefixes[p] = true
	if f := family(p.Addr()); !slices.Contains(s.lengths[f], p.Bits()) {
		s.lengths[f] = append(s.lengths[f], p.Bits())
	}
}

// has reports whether a prefix of the set has a in it.
func (s *prefixSet) has(a netip.Addr) bool {
	if s.prefixes == nil || !a.IsValid() {
		return false
	}
	a = a.Unmap().WithZone("")
	for _, bits := range s.lengths[family(a)] {
		if p, err := a.Prefix(bits); err == nil && s.prefixes[p] {
			return true
		}
	}
	return false
}
