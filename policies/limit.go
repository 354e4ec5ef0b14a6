package policies

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"authguard/limiter"
	"go.yaml.in/yaml/v3"
)

// rate is "N per DURATION".
type rate struct {
	count int64
	per   time.Duration
}

func exact(r rate) limiter.Limit { return limiter.SlidingWindow{Limit: r.count, Window: r.per} }
func counter(r rate) limiter.Limit {
	return limiter.SlidingWindowCounter{Limit: r.count, Window: r.per}
}
func fixed(r rate) limiter.Limit { return limiter.FixedWindow{Limit: r.count, Window: r.per} }

// windows appends the limits of n, one rate or a list of them.
func (rr *ruleReader) windows(n *yaml.Node, field string, law func(rate) limiter.Limit) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode && len(n.Content) > 0 {
		items = n.Content
	}
	for _, item := range items {
		if rr.refused[item] {
			continue
		}
		before := len(rr.list)
		rr.place(field, item, law(rr.rate(item, rr.where, field)))
		rr.placed[len(rr.placed)-1].sound = len(rr.list) == before
	}
}

// maxExact is the most that limiter.SlidingWindow holds.
const maxExact = 1000

// check notes what makes l no limit although each of its numbers is in range.
func (r *reader) check(n *yaml.Node, where, field string, l limiter.Limit) {
	if w, ok := l.(limiter.SlidingWindow); ok && w.Limit > maxExact {
		r.at(n, "%s: %s %s: an exact window holds at most %d, write counter: %s", where, field, describe(n), maxExact, clip(n.Value))
		return
	}
	if _, ok := l.(limiter.Backoff); ok {
		return // backoff has told where each of its numbers is wrong
	}
	if err := l.Validate(); err != nil {
		r.at(n, "%s: %s %s: %s", where, field, describe(n), strings.TrimPrefix(err.Error(), "limiter: "))
	}
}

// rate reads "N per DURATION".
func (r *reader) rate(n *yaml.Node, where, field string) rate {
	words := strings.Fields(n.Value)
	if !isString(n) || len(words) != 3 || words[1] != "per" {
		r.at(n, "%s: %s is %s, want N per DURATION, for instance 5 per 15m", where, field, describe(n))
		return rate{}
	}
	count, err := parseCount(words[0])
	if err != nil {
		r.at(n, "%s: %s %s: %v", where, field, describe(n), err)
	}
	per, err := parseWindow(words[2])
	if err != nil {
		r.at(n, "%s: %s %s: %v", where, field, describe(n), err)
	}
	return rate{count, per}
}

// whole reads a capacity or count, which is a number in YAML too.
func (r *reader) whole(n *yaml.Node, where, field string) int64 {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" && n.Tag != "!!float" {
		r.at(n, "%s: %s is %s, want a whole number, for instance 10", where, field, describe(n))
		return 0
	}
	count, err := parseCount(n.Value)
	if err != nil {
		r.at(n, "%s: %s: %v", where, field, err)
	}
	return count
}

// wholeNumber is decimal and nothing else: YAML reads 010 as 8 and 1_0 as 10.
var wholeNumber = regexp.MustCompile(`^(0|-?[1-9][0-9]*)$`)

func parseCount(s string) (int64, error) {
	if !wholeNumber.MatchString(s) {
		return 0, fmt.Errorf("%q is not a whole number such as 5", short(s))
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > limiter.MaxLimit {
		return 0, fmt.Errorf("%s is out of range, want 1 to %d", short(s), limiter.MaxLimit)
	}
	return n, nil
}
