package httpguard

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"authguard/guard"
)

// SetRateLimit sets the fields of the Edge's [Dialect] to where an attempt's
// limits stand. from is a *[guard.Pass] or a *[guard.Denied]. Middleware made by
// [Edge.Limit] does it by itself.
//
// Only a client that owns the counters may see them: call it where the client
// has proved who it is, such as an API with a valid key. On a login they would
// tell a stranger how often an account was tried.
func (e *Edge) SetRateLimit(h http.Header, from interface{ Limits() []guard.Status }) {
	e.setFields(h, from.Limits(), toOwner)
}

// audience is who reads the fields.
type audience uint8

const (
	toOwner   audience = iota // who has proved to be whom the rules count: of all rules
	toAddress                 // anybody who shares the address: of rules by address alone
	audiences
)

// tier is one limit of one rule, as fields tell of it. What a request adds to
// it are digits.
type tier struct {
	rule      string
	index     int // among the rule's limits
	byAddress bool
	item      [2]string // `"api/key";r=` and `;t=`, in the dialects that have items
}

func (t tier) shownTo(a audience) bool { return a == toOwner || t.byAddress }

// actionFields are the tiers of an action and its RateLimit-Policy.
type actionFields struct {
	tiers    []tier
	policies [audiences]string
}

// prepare builds what fields tell of p: of the rules that refuse, those limits
// that count requests. A tier is named as in violated-policies, "api/key"; if its
// rule has several limits, by their numbers too: "api/key/1".
func prepare(p guard.Policy, d Dialect) (*actionFields, error) {
	f := new(actionFields)
	var lists [audiences]httpsfv.List
	left, window := d.parameters()
	for _, r := range p.Rules {
		if r.Effect != guard.Deny {
			continue
		}
		for i, l := range r.Limits {
			if !countsRequests(l) {
				continue
			}
			name := p.Action + "/" + r.Name
			if len(r.Limits) > 1 {
				name += "/" + strconv.Itoa(i+1)
			}
			item := httpsfv.NewItem(name)
			item.Params.Add(left, int64(0))
			item.Params.Add(window, int64(0))
			text, err := httpsfv.Marshal(item)
			if err != nil {
				return nil, err
			}
			digit := strings.LastIndex(text, "0;")
			t := tier{
				rule: r.Name, index: i,
				byAddress: r.By == guard.ByIP || strings.HasPrefix(string(r.By), "ip/"),
				item:      [2]string{text[:digit], text[digit+1 : len(text)-1]},
			}
			f.tiers = append(f.tiers, t)
			for a := range lists {
				if t.shownTo(audience(a)) {
					q, w := quota(l)
					lists[a] = append(lists[a], policyItem(d, name, q, w))
				}
			}
		}
	}
	for a, list := range lists {
		if len(list) == 0 {
			continue
		}
		text, err := httpsfv.Marshal(list)
		if err != nil {
			return nil, err
		}
		f.policies[a] = text
	}
	return f, nil
}

// pieces are what stands around the digits of Draft7's RateLimit.
func pieces() ([]string, error) {
	d := httpsfv.NewDictionary()
	for _, key := range []string{"limit", "remaining", "reset"} {
		d.Add(key, httpsfv.NewItem(int64(0)))
	}
	text, err := httpsfv.Marshal(d)
	return strings.Split(text, "0"), err
}

// policyItem is one item of RateLimit-Policy; older drafts have no names.
func policyItem(d Dialect, name string, q, w int64) httpsfv.Item {
	if d == Draft6 || d == Draft7 {
		item := httpsfv.NewItem(q)
		if w > 0 {
			item.Params.Add("w", w)
		}
		return item
	}
	item := httpsfv.NewItem(name)
	item.Params.Add("q", q)
	if w > 0 {
		item.Params.Add("w", w)
	}
	return item
}

// shown is a tier and where it stands.
type shown struct {
	tier
	guard.Status
}

// show picks what an audience may see of limits.
func (f *actionFields) show(limits []guard.Status, a audience) (all []shown) {
	index := 0
	for i, s := range limits {
		if i > 0 && limits[i-1].Rule == s.Rule { // the limits of a rule stand side by side
			index++
		} else {
			index = 0
		}
		at := slices.IndexFunc(f.tiers, func(t tier) bool { return t.rule == s.Rule && t.index == index })
		if at >= 0 && f.tiers[at].shownTo(a) {
			all = append(all, shown{f.tiers[at], s})
		}
	}
	return all
}

// setFields tells a of limits, and replaces what other middleware has told.
func (e *Edge) setFields(h http.Header, limits []guard.Status, a audience) {
	clearFields(h)
	if e.dialect == NoFields || len(limits) == 0 {
		return
	}
	f := e.fieldsOf(limits[0].Action)
	if f == nil {
		return
	}
	all := f.show(limits, a)
	if len(all) == 0 {
		return
	}
	if e.dialect != XRateLimit {
		h.Set("RateLimit-Policy", f.policies[a])
	}
	tightest := slices.MaxFunc(all, tighter)
	d := tightest.Decision
	limit, remaining := strconv.FormatInt(d.Limit, 10), strconv.FormatInt(d.Remaining, 10)
	switch e.dialect {
	case XRateLimit:
		at := d.Time().Add(reset(d) + time.Second - time.Microsecond).Unix() // rounded up
		h.Set("X-RateLimit-Limit", limit)
		h.Set("X-RateLimit-Remaining", remaining)
		h.Set("X-RateLimit-Reset", strconv.FormatInt(at, 10))
	case Draft6:
		h.Set("RateLimit-Limit", limit)
		h.Set("RateLimit-Remaining", remaining)
		h.Set("RateLimit-Reset", strconv.FormatInt(roundUp(reset(d)), 10))
	case Draft7:
		p := e.pieces
		h.Set("RateLimit", p[0]+limit+p[1]+remaining+p[2]+strconv.FormatInt(roundUp(reset(d)), 10))
	default:
		h.Set("RateLimit", e.list(all, limits))
	}
}

// list is the RateLimit of a list form. If the request is refused, no window is
// longer than its wait: that less may be used in a shorter time stays true.
func (e *Edge) list(all []shown, limits []guard.Status) string {
	var wait time.Duration
	for _, s := range limits {
		wait = max(wait, s.Decision.RetryAfter)
	}
	b := make([]byte, 0, 48*len(all))
	for i, s := range all {
		t := effective(s.Status)
		if wait > 0 {
			t = min(t, wait)
		}
		if i > 0 {
			b = append(b, ", "...)
		}
		b = strconv.AppendInt(append(b, s.item[0]...), s.Decision.Remaining, 10)
		b = strconv.AppendInt(append(b, s.item[1]...), roundUp(t), 10)
	}
	return string(b)
}

// tighter orders limits by how much they are in the way: one that denies before
// one that does not, the longest wait, the least that remains, and the longest
// time to be whole.
func tighter(a, b shown) int {
	x, y := a.Decision, b.Decision
	switch {
	case x.RetryAfter != y.RetryAfter:
		return sign(x.RetryAfter > y.RetryAfter)
	case x.Remaining != y.Remaining:
		return sign(x.Remaining < y.Remaining)
	case x.ResetAfter != y.ResetAfter:
		return sign(x.ResetAfter > y.ResetAfter)
	}
	return 0
}

func sign(more bool) int {
	if more {
		return 1
	}
	return -1
}

// clearFields removes the fields of every dialect: they would be those of
// another limit.
func clearFields(h http.Header) {
	for _, d := range []Dialect{XRateLimit, Draft6, Draft7} {
		for _, name := range d.fields() {
			h.Del(name)
		}
	}
}

// roundUp is d in whole seconds.
func roundUp(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
