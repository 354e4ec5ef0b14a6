//go:build unix

package chaos_test

import (
	"maps"
	"time"
)

// report is what a worker tells, of the time since its last line.
type report struct {
	Tallies     map[string]map[account]*tally // by action
	Attempts    int
	Unavailable int // refused because nobody could say
	Unrefunded  int // successes whose refund did not get through
	Slowest     time.Duration
	Late        int      // answers later than the deadline and a fifth
	Stalled     int      // answers that were as late because the process did not run
	Wrong       []string // errors that are no answer
	Healed      bool     // of the last line: the store answers again
}

// tally is what came of an action's attempts at one account.
type tally struct {
	Shared    int // admitted by the shared store, and not given back
	Alone     int // admitted by a process alone, and not given back
	Succeeded int // admitted and given back
	Refused   int // by the shared store
	Unknown   int // asked, and the store did not say
}

func (r *report) tally(action string, a account) *tally {
	if r.Tallies == nil {
		r.Tallies = map[string]map[account]*tally{}
	}
	if r.Tallies[action] == nil {
		r.Tallies[action] = map[account]*tally{}
	}
	t := r.Tallies[action][a]
	if t == nil {
		t = new(tally)
		r.Tallies[action][a] = t
	}
	return t
}

// add adds what another line tells.
func (r *report) add(more report) {
	for action, tallies := range more.Tallies {
		for a, t := range tallies {
			r.tally(action, a).add(*t)
		}
	}
	r.Attempts += more.Attempts
	r.Unavailable += more.Unavailable
	r.Unrefunded += more.Unrefunded
	r.Slowest = max(r.Slowest, more.Slowest)
	r.Late += more.Late
	r.Stalled += more.Stalled
	r.Wrong = append(r.Wrong, more.Wrong...)
}

func (t *tally) add(more tally) {
	t.Shared += more.Shared
	t.Alone += more.Alone
	t.Succeeded += more.Succeeded
	t.Refused += more.Refused
	t.Unknown += more.Unknown
}

// sum is what came of all attempts of an action.
func (r *report) sum(action string) (sum tally) {
	for t := range maps.Values(r.Tallies[action]) {
		sum.add(*t)
	}
	return sum
}
