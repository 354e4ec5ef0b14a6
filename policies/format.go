package policies

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"authguard/guard"
)

// Format prints policies for people to check, one rule a line, with the
// durations that are really in force:
//
//	login/account  5 per 15m0s and 30 per 24h0m0s  by account  failures  deny
//
// "about" marks limits by SlidingWindowCounter, "at once" those by TokenBucket,
// "queue" those by LeakyBucket, "fixed" those by FixedWindow, "failures free"
// those by Backoff and "different" those by Distinct, which say what is counted
// in "by ip, distinct account". "shared password" names state that several
// actions count in together, and "untrusted" or "trusted" the only clients that
// a rule counts. Programs should print this when they start.
func Format(ps []guard.Policy) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, p := range ps {
		for _, r := range p.Rules {
			limits := make([]string, len(r.Limits))
			for i, l := range r.Limits {
				limits[i] = fmt.Sprint(l)
			}
			fmt.Fprintf(w, "%s/%s\t%s\tby %s\t%s\t%s\n", p.Action, r.Name, strings.Join(limits, " and "), subject(r), r.Counts, effect(r))
		}
	}
	w.Flush() // cannot fail: a Builder does not
	return b.String()
}

// effect is what r does, and what it does while the store is down where that is
// not to count locally.
func effect(r guard.Rule) string {
	if r.OnOutage == guard.OutageLocal {
		return r.Effect.String()
	}
	return r.Effect.String() + ", in an outage " + r.OnOutage.String()
}

// subject is whom r counts, and by what state.
func subject(r guard.Rule) string {
	s := string(r.By)
	if r.Members != "" {
		s += ", distinct " + string(r.Members)
	}
	if r.Clients != guard.AllClients {
		s += ", " + r.Clients.String()
	}
	if r.Shared != "" {
		s += ", shared " + r.Shared
	}
	return s
}
