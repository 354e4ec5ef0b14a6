package policies

import (
	"slices"
	"strconv"
	"strings"

	"authguard/guard"
	"authguard/limiter"
)

// rows are the guessers whom p is explained for, without figures.
func rows(p guard.Policy) []Left {
	all := rowsOf(classOf(p, false), OneAddress, AllAccounts, IPv6Network, Botnet, BotnetAll)
	for i := range all {
		all[i].DevicesSpared = all[i].Guesser == Botnet && sparesDevices(p)
	}
	if tellsDevices(p) {
		all = append(all, rowsOf(classOf(p, true), StolenDevice)...)
	}
	return all
}

// rowsOf are those of the guessers, for whom the rules of p count.
func rowsOf(p guard.Policy, guessers ...Guesser) []Left {
	unit, owners := Attempts, []Owner{AnyOwner}
	network, together, asked := defaultBits, false, slices.ContainsFunc(p.Rules, asks)
	for _, r := range p.Rules {
		if r.Effect == guard.Observe {
			continue
		}
		together = together || r.By == guard.Global
		account, bits := kindOf(r.By)
		if bits > 0 {
			network = min(network, bits)
		}
		switch {
		case r.Effect == guard.Silent:
			unit = Mails
		case r.Counts == guard.Failures && unit != Mails:
			unit = Guesses
		}
		if account && r.Counts == guard.Failures {
			owners = []Owner{Idle, LoggingIn}
		}
	}
	var all []Left
	for _, g := range guessers {
		bits, owners := 0, owners
		switch {
		case g == IPv6Network && network == defaultBits:
			continue
		case g == BotnetAll && !together:
			continue
		case g == IPv6Network:
			bits, owners = network, []Owner{AnyOwner}
		case g == AllAccounts, g == BotnetAll:
			owners = []Owner{AnyOwner}
		}
		for _, o := range owners {
			row := Left{Action: p.Action, Unit: unit, Guesser: g, Network: bits, Owner: o, Asked: asked}
			all = append(all, row)
			if row.Solver = true; asked {
				all = append(all, row)
			}
		}
	}
	return all
}

// scenario is a row as far as a policy can tell it from others.
type scenario struct {
	manyAccounts  bool
	manyAddresses bool // each attempt may come from an address of its own
	network       int  // bits of the IPv6 prefix in which the addresses lie, or 0
	owner         bool // logs in
	stolen        bool // the guesser has a device cookie of the account
	solves        bool // all challenges
}

func reduce(p guard.Policy, row Left) scenario {
	byAccount, byAddress := false, false
	for _, r := range p.Rules {
		for _, by := range []guard.By{r.By, r.Members} {
			account, bits := kindOf(by)
			byAccount = byAccount || account
			byAddress = byAddress || bits > 0
		}
	}
	return scenario{
		manyAccounts:  byAccount && (row.Guesser == AllAccounts || row.Guesser == IPv6Network || row.Guesser == BotnetAll),
		manyAddresses: byAddress && (row.Guesser == Botnet || row.Guesser == StolenDevice || row.Guesser == BotnetAll),
		network:       row.Network,
		owner:         row.Owner == LoggingIn,
		stolen:        row.Guesser == StolenDevice,
	}
}

// A level says whom a denial stops.
type level int

const (
	everybody level = iota
	itsLane         // all attempts from one address of an IPv6Network
	itself          // one account of many, or one address of many
	levels
)

// level is that of a rule by by.
func (s scenario) level(by guard.By) level {
	switch account, bits := kindOf(by); {
	case account && s.manyAccounts, bits > 0 && s.manyAddresses:
		return itself
	case s.network > 0 && bits > s.network:
		return itsLane
	}
	return everybody
}

// varies reports that the guesser has any number of identities to choose from.
func (s scenario) varies() bool { return s.manyAccounts || s.manyAddresses }

// everyNew reports that nobody need come twice: no account and no address runs out.
func (s scenario) everyNew() bool { return s.manyAccounts && s.manyAddresses }

// bounded reports that some rule of p bounds what s gets. How many different
// identities it may use says nothing unless each of them is bounded too.
func (s scenario) bounded(p guard.Policy) bool {
	eachBounded, fewIdentities := false, false
	for _, r := range p.Rules {
		if r.Effect == guard.Observe {
			continue
		}
		all := s.level(r.By) == everybody
		if distinct(r) {
			fewIdentities = fewIdentities || all && s.level(r.Members) == itself
			continue
		}
		if all {
			return true
		}
		eachBounded = eachBounded || s.level(r.By) == itself
	}
	return eachBounded && fewIdentities
}

func distinct(r guard.Rule) bool { return r.Members != "" }

// streakOf is the backoff on accounts that p has, if any.
func streakOf(p guard.Policy) (limiter.Backoff, bool) {
	for _, r := range p.Rules {
		i := slices.IndexFunc(r.Limits, func(l limiter.Limit) bool { return l.Law() == limiter.Backoff{}.Law() })
		if i >= 0 && r.By == guard.ByAccount && r.Effect != guard.Observe {
			b, ok := r.Limits[i].(limiter.Backoff)
			return b, ok
		}
	}
	return limiter.Backoff{}, false
}

// defaultBits is the IPv6 prefix that guard.ByIP counts by.
const defaultBits = 64

// kindOf tells whether by distinguishes accounts, and addresses: by how many
// bits of an IPv6 address, or 0.
func kindOf(by guard.By) (account bool, bits int) {
	switch by {
	case guard.ByAccount, guard.ByAPIKey:
		return true, 0
	case guard.ByIP:
		return false, defaultBits
	case guard.ByIPAndAccount:
		return true, defaultBits
	}
	if text, ok := strings.CutPrefix(string(by), "ip/"); ok {
		bits, _ = strconv.Atoi(text) // the policy is valid
	}
	return false, bits
}
