package replay

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

const explained = `What these policies would have refused of what was recorded: of attempts that had
succeeded (owners annoyed), had failed (guesses stopped), or whose outcome nobody
knows, for they were refused then, too, or not settled. "then": denials in the
recording by the rule of that name.
`

// String is a table for each action, for people.
func (r *Report) String() string {
	var b strings.Builder
	b.WriteString(explained)
	for _, note := range r.notes() {
		fmt.Fprintf(&b, "\n%s", note)
	}
	b.WriteString("\n")
	for i := range r.Actions {
		r.Actions[i].table(&b)
	}
	return b.String()
}

// notes are on the recording as a whole.
func (r *Report) notes() (notes []string) {
	if r.From.IsZero() {
		return []string{"The recording has no attempt."}
	}
	notes = append(notes, fmt.Sprintf("Recorded from %s to %s.", instant(r.From), instant(r.To)))
	for _, action := range slices.Sorted(maps.Keys(r.NotTried)) {
		notes = append(notes, fmt.Sprintf("Not tried, for the policies do not name it: %s, %d attempts.", action, r.NotTried[action]))
	}
	for _, n := range []struct {
		n    int
		text string
	}{
		{int(r.Missing), "records are missing: they were dropped when they were written"},
		{r.Torn, "files end in half a line, which is left out"},
		{r.Late, "attempts stand more than half a minute behind later ones, and were made then"},
		{r.Strange, "lines are of unknown kinds, and left out"},
		{r.Homeless, "attempts have an end and no beginning, and are left out"},
	} {
		if n.n > 0 {
			notes = append(notes, fmt.Sprintf("%d %s.", n.n, n.text))
		}
	}
	return notes
}

// table writes what became of one action.
func (a *Action) table(b *strings.Builder) {
	fmt.Fprintf(b, "\n%s: %d attempts, of which %d had succeeded and %d failed\n", a.Action, a.Attempts, a.Succeeded, a.Failed)
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tthen\tnow\thad succeeded\thad failed\tunknown\taccounts\taddresses\tfirst\tlast\t")
	width := len("refused")
	for _, r := range a.Rules {
		width = max(width, len(r.label()))
	}
	row := func(name string, then int, t *Tally) {
		fmt.Fprintf(w, "%-*s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t\n", width, name, then, t.Refused,
			t.Succeeded, t.Failed, t.Unknown, t.Accounts, t.Addresses, maybe(t.First), maybe(t.Last))
	}
	row("refused", a.RefusedThen, &a.Refused)
	for i := range a.Rules {
		row(a.Rules[i].label(), a.Rules[i].Then, &a.Rules[i].Tally)
	}
	w.Flush() // cannot fail: a Builder does not
	if a.RefusedThen > 0 || a.Refused.Refused > 0 {
		fmt.Fprintf(b, "  Refused by both: %d. Only now: %d. Only then: %d, which count as failures here.\n", a.Both, a.OnlyNow, a.OnlyThen)
	}
	if a.Impossible > 0 {
		fmt.Fprintf(b, "  Impossible: %d attempts cost more than a limit has, or have no account where nothing else is counted.\n", a.Impossible)
	}
}

// label is a rule's name and, if it does not refuse, its effect.
func (r *Rule) label() string {
	if r.Effect == "deny" {
		return r.Name
	}
	return r.Name + " (" + r.Effect + ")"
}

func maybe(t *time.Time) string {
	if t == nil {
		return "-"
	}
	return instant(*t)
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
