package policies

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

const explained = `How much gets through for somebody who guesses without pause: from the first
attempt on, and the most in any second, minute and hour. ~ marks estimates, for
which the end of what was run goes on.
`

// String is a table for each action, for people.
func (e Explanation) String() string {
	var b strings.Builder
	b.WriteString(explained)
	for i := 0; i < len(e); {
		n := i + 1
		for n < len(e) && e[n].Action == e[i].Action {
			n++
		}
		e[i:n].table(&b)
		i = n
	}
	return b.String()
}

// table writes the rows of one action.
func (e Explanation) table(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s: %s\n", e[0].Action, e[0].Unit)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tfirst hour\tfirst day\t30 days\tyear\tany second\tany minute\tany hour\t")
	width := 0
	for _, l := range e {
		width = max(width, len(l.who()))
	}
	for _, l := range e {
		// Names stand on the left: padded here, since columns align to the right.
		fmt.Fprintf(w, "%-*s\t", width, l.who())
		for _, f := range []Figure{l.Hour, l.Day, l.Days30, l.Year, l.AnySecond, l.AnyMinute, l.AnyHour} {
			fmt.Fprintf(w, "%v\t", f)
		}
		fmt.Fprintln(w)
	}
	w.Flush() // cannot fail: a Builder does not
	said := make(map[string]bool)
	for _, l := range e {
		for _, note := range l.notes() {
			if !said[note] {
				said[note] = true
				fmt.Fprintf(b, "  %s\n", note)
			}
		}
	}
}

// who names the row.
func (l Left) who() string {
	s := string(l.Guesser)
	if l.Network > 0 {
		s = strings.Replace(s, "network", "/"+strconv.Itoa(l.Network), 1)
	}
	if l.Owner != AnyOwner {
		s += ", owner " + string(l.Owner)
	}
	if l.Solver {
		s += ", challenges solved"
	}
	return s
}

// notes are what the figures do not say.
func (l Left) notes() []string {
	var all []string
	owner := ""
	if l.Owner != AnyOwner {
		owner = "Owner " + string(l.Owner) + ": "
	}
	if l.LockedAfter > 0 {
		what := "account"
		if l.Guesser == StolenDevice {
			what = "account's devices"
		}
		all = append(all, fmt.Sprintf("%swho never stops locks the %s after %s, %s after the first.", owner, what, grouped(int64(l.LockedAfter)), inDays(l.LockedIn)))
	}
	if l.Pause > 0 {
		if l.Owner == LoggingIn {
			all = append(all, fmt.Sprintf("%sthe year takes patience, a pause after each %s, until they are forgotten or the owner has logged in.", owner, grouped(l.PauseAfter)))
		} else {
			all = append(all, fmt.Sprintf("%sthe year takes patience, a pause of %s after each %s, in which they are forgotten.", owner, inDays(l.Pause), grouped(l.PauseAfter)))
		}
	}
	if l.DevicesSpared {
		all = append(all, "An owner on a known device is never refused by a botnet, nor by anybody behind the same address.")
	}
	if l.Asked {
		all = append(all, "Whoever solves challenges, or pays for it, gets what the rows say that end so, and no more where there is none.",
			"Where no challenge can be asked for, rules that would ask deny instead, and those by global bound nobody.")
	}
	return all
}

// String is the number with groups of three digits, "about" before it if it is
// estimated, "over" if there may be more, or "no limit".
func (f Figure) String() string {
	switch {
	case f.Unbounded && f.N == 0:
		return "no limit"
	case f.Unbounded:
		return "over " + grouped(f.N)
	case f.Estimated:
		return "~" + grouped(f.N)
	}
	return grouped(f.N)
}

func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// inDays is d with days, to the minute.
func inDays(d time.Duration) string {
	d = d.Round(time.Minute)
	var parts []string
	for _, u := range []struct {
		unit time.Duration
		name string
	}{{day, "day"}, {time.Hour, "hour"}, {time.Minute, "minute"}} {
		if n := d / u.unit; n > 0 {
			d -= n * u.unit
			if n != 1 {
				u.name += "s"
			}
			parts = append(parts, fmt.Sprintf("%d %s", n, u.name))
		}
	}
	return strings.Join(parts, " ")
}
