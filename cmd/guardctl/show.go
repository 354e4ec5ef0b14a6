package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"authguard/guard"
	"authguard/guard/adminapi"
)

// inspect says why attempts are refused.
func (r *request) inspect(ctx context.Context, o adminapi.Operator, stdout io.Writer) error {
	q := adminapi.Question{Action: r.args[0], IP: r.ip, Device: r.device}
	if len(r.args) > 1 {
		q.Account = r.args[1]
	}
	report, err := o.Inspect(ctx, q)
	if err != nil {
		return err
	}
	if r.json {
		return encode(stdout, report)
	}
	_, err = io.WriteString(stdout, tell(report))
	return err
}

// tell is a report for people.
func tell(r adminapi.Report) string {
	var b strings.Builder
	b.WriteString(r.Action)
	if r.Account != "" {
		b.WriteString(" of " + shown(r.Account))
	}
	if r.IP != "" {
		b.WriteString(" from " + r.IP)
	}
	b.WriteString("\n")
	for _, c := range []struct{ class, people string }{
		{guard.UntrustedClients.String(), "unknown devices"},
		{guard.TrustedClients.String(), "known devices"},
	} {
		if r.Clients == guard.AllClients.String() || r.Clients == c.class {
			fmt.Fprintf(&b, "  %-16s %s\n", c.people+":", verdict(r.Refusing(c.class)))
		}
	}
	b.WriteString("\n")
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, l := range r.Limits {
		fmt.Fprintf(w, "  %s\tby %s\t%s\t%s\t%s\n", l.Rule, l.By, whose(l.Clients), count(l), now(l))
	}
	w.Flush() // into memory: never fails
	return b.String()
}

// verdict is what the limits that refuse a class make of it.
func verdict(refusing []adminapi.Limit) string {
	if len(refusing) == 0 {
		return "not refused"
	}
	last := slices.MaxFunc(refusing, func(a, b adminapi.Limit) int { return a.NextAt.Compare(b.NextAt) })
	var rules []string
	for _, l := range refusing {
		if !slices.Contains(rules, l.Rule) {
			rules = append(rules, l.Rule)
		}
	}
	by := " by " + strings.Join(rules, ", ")
	switch {
	case slices.ContainsFunc(refusing, func(l adminapi.Limit) bool { return l.Rule == guard.DeniedRule }):
		return "refused for good by a deny list"
	case slices.ContainsFunc(refusing, func(l adminapi.Limit) bool { return l.Locked }):
		return "locked until recovery or guardctl unlock," + by
	}
	return "refused for " + wait(last) + "," + by
}

// wait is how long a limit refuses, and until when.
func wait(l adminapi.Limit) string {
	return span(time.Duration(l.Retry*float64(time.Second))) + ", until " + l.NextAt.Format("2006-01-02 15:04:05 UTC")
}

// span is a duration in whole seconds, rounded up, with days.
func span(d time.Duration) string {
	d = (d + time.Second - 1).Truncate(time.Second)
	const day = 24 * time.Hour
	days := ""
	if d >= day {
		days = strconv.Itoa(int(d/day)) + "d"
		if d %= day; d == 0 {
			return days
		}
	}
	return days + d.String()
}

func whose(clients string) string {
	switch clients {
	case guard.UntrustedClients.String():
		return "unknown devices"
	case guard.TrustedClients.String():
		return "known devices"
	}
	return "everybody"
}

// count is how much of a limit is used.
func count(l adminapi.Limit) string {
	if l.Rule == guard.BlockedRule || l.Rule == guard.DeniedRule {
		return "by an operator"
	}
	return fmt.Sprintf("%d of %s", l.Used, l.Limit)
}

// now is what a limit does at present.
func now(l adminapi.Limit) string {
	said := "admits"
	switch {
	case l.Rule == guard.DeniedRule:
		said = "refuses for good"
	case l.Locked:
		said = "locked until " + l.ResetAt.Format("2006-01-02 15:04:05 UTC") + " at the latest"
	case l.Refuses:
		said = "refuses for " + wait(l)
	case l.Used == 0:
		said = "whole"
	}
	if l.Lifted {
		return "lifted by the allow list"
	}
	if l.Refuses && l.Effect != guard.Deny.String() {
		return said + " (" + l.Effect + ")"
	}
	return said
}

// list says who is refused.
func (r *request) list(ctx context.Context, o adminapi.Operator, stdout io.Writer) error {
	limits, err := o.Refused(ctx, r.most)
	if err != nil {
		return err
	}
	if r.json {
		return encode(stdout, map[string][]adminapi.Limit{"refused": limits})
	}
	if len(limits) == 0 {
		_, err := fmt.Fprintln(stdout, "nobody is refused now")
		return err
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	for _, l := range limits {
		rule := l.Rule + " " + l.By
		if l.Action != "" {
			rule = l.Action + "/" + l.Rule
		}
		name := shown(l.Name)
		if l.Name == "" {
			name = "(" + l.Subject + ")"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", rule, name, count(l), now(l))
	}
	if len(limits) == r.most {
		fmt.Fprintf(w, "and perhaps more; -n asks for them\n")
	}
	return w.Flush()
}

// shown is a name as a terminal may have it: whoever chose it shall not move the
// cursor of the operator.
func shown(name string) string {
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }) || strings.HasPrefix(name, `"`) {
		return strconv.QuoteToASCII(name)
	}
	return name
}
