package replay

import "time"

// A Report is what policies would have done to a recording. Numbers are of
// attempts. Its String is a table for each action.
type Report struct {
	From    time.Time `json:"from"` // the first attempt and
	To      time.Time `json:"to"`   // the last
	Actions []Action  `json:"actions"`

	// NotTried are attempts at actions that the policies do not name.
	NotTried map[string]int `json:"not_tried,omitempty"`

	// What of the recording is missing or in disorder; see recording.Reader.
	Missing  uint64 `json:"missing,omitempty"`
	Torn     int    `json:"torn,omitempty"`
	Late     int    `json:"late,omitempty"`
	Strange  int    `json:"strange,omitempty"`
	Homeless int    `json:"homeless,omitempty"`
}

// An Action is what became of the attempts at one.
type Action struct {
	Action   string `json:"action"`
	Attempts int    `json:"attempts"`

	// How they ended in the recording.
	Succeeded int `json:"succeeded"`
	Failed    int `json:"failed"`
	Unknown   int `json:"unknown"` // refused, or not settled as either

	// The tried policies against those of then: refused by both, by one, by none.
	RefusedThen int `json:"refused_then"` // because nobody could say, too
	Both        int `json:"refused_by_both"`
	OnlyNow     int `json:"refused_only_now"`
	OnlyThen    int `json:"refused_only_then"`

	// Impossible are attempts that the tried policies cannot even judge: they cost more
	// than a limit has, or have no account where nothing else is counted. They are
	// refused, and in no other number but Attempts and how they ended.
	Impossible int `json:"impossible,omitempty"`

	Refused Tally  `json:"refused"` // by any rule
	Rules   []Rule `json:"rules"`
}

// A Rule is what one rule did.
type Rule struct {
	Name   string `json:"name"`
	Effect string `json:"effect"` // for silent and observe, Refused are those that went on
	Then   int    `json:"then"`   // denials in the recording by a rule of that name
	Tally
}

// A Tally is of attempts that were denied.
type Tally struct {
	Refused   int        `json:"refused"`
	Succeeded int        `json:"had_succeeded"` // then: owners annoyed
	Failed    int        `json:"had_failed"`    // then: guesses stopped
	Unknown   int        `json:"unknown"`       // then refused themselves, or not settled
	Accounts  int        `json:"accounts"`      // how many different ones they were at
	Addresses int        `json:"addresses"`     // and from: IPv4 addresses and IPv6 /64s
	First     *time.Time `json:"first,omitempty"`
	Last      *time.Time `json:"last,omitempty"`

	accounts, addresses map[string]struct{}
}

// add counts an attempt that was denied.
func (t *Tally) add(at time.Time, how outcome, account, address string) {
	if t.Refused == 0 {
		t.First = &at
		t.accounts, t.addresses = make(map[string]struct{}), make(map[string]struct{})
	}
	t.Refused++
	t.Last = &at
	switch how {
	case succeeded:
		t.Succeeded++
	case failed:
		t.Failed++
	default:
		t.Unknown++
	}
	if account != "" {
		t.accounts[account] = struct{}{}
	}
	if address != "" {
		t.addresses[address] = struct{}{}
	}
	t.Accounts, t.Addresses = len(t.accounts), len(t.addresses)
}

// outcome is how an attempt ended in the recording.
type outcome int

const (
	unknown outcome = iota
	succeeded
	failed
)
