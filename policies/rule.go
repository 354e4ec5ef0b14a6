package policies

import (
	"slices"
	"strings"
	"time"

	"authguard/guard"
	"authguard/limiter"
	"go.yaml.in/yaml/v3"
)

const wantBy = "account, ip, ip/BITS with 32 to 128 bits, ip+account, device, api_key, tenant, global or part:NAME"

var (
	// lawKeys are the keys that give a rule a limit.
	lawKeys  = []string{"limit", "counter", "fixed", "bucket", "queue", "backoff"}
	ruleKeys = slices.Concat([]string{"by"}, lawKeys, []string{"distinct", "refill", "leak", "shared", "clients", "counts", "effect", "on_outage"})
	wantKeys = strings.Join(ruleKeys[:len(ruleKeys)-1], ", ") + " or " + ruleKeys[len(ruleKeys)-1]
	subjects = []string{"account", "ip", "ip+account", "device", "api_key", "tenant", "global"}
)

// policies reads the map of actions.
func (r *reader) policies(root *yaml.Node) []guard.Policy {
	var all []guard.Policy
	r.entries(root, "file", "a map of actions", func(key, rules *yaml.Node) {
		if key.Value == listsKey {
			r.readLists(rules)
			return
		}
		p := guard.Policy{Action: key.Value}
		if !validName(p.Action) {
			r.at(key, "action %s: want 1 to 32 of a-z, 0-9 and _", describe(key))
		}
		r.entries(rules, clip(p.Action), "a map of rules", func(key, fields *yaml.Node) {
			p.Rules = append(p.Rules, r.rule(p.Action, key, fields))
		})
		// The reader has checked all that it knows of. What the guard would
		// refuse besides is refused here, with at least the action's position.
		if len(r.list) == 0 {
			if err := p.Validate(); err != nil {
				r.at(key, "%s: %v", p.Action, err)
			}
		}
		all = append(all, p)
	})
	return all
}

// entries visits the entries of a map: those whose key is a string, the first
// time that it comes.
func (r *reader) entries(n *yaml.Node, where, want string, visit func(key, value *yaml.Node)) {
	if r.refused[n] {
		return
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		r.at(n, "%s is %s, want %s", where, describe(n), want)
		return
	}
	first := make(map[string]*yaml.Node)
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch earlier := first[key.Value]; {
		case r.refused[key]:
		case key.Kind != yaml.ScalarNode || key.Tag != "!!str":
			r.at(key, "%s has a key that is %s, want a string", where, describe(key))
		case earlier != nil:
			r.at(key, "%s has the key %s twice, first on line %d", where, describe(key), earlier.Line)
		default:
			first[key.Value] = key
			visit(key, value)
		}
	}
}

// ruleReader is one rule being read.
type ruleReader struct {
	*reader
	where  string // "action/rule", for errors
	rule   guard.Rule
	name   *yaml.Node
	seen   map[string]*yaml.Node // values by key
	placed []placed              // one for each of rule.Limits
	rates  map[string]rate       // of refill and leak
}

// placed says where a limit stands in the file.
type placed struct {
	field string
	node  *yaml.Node
	sound bool // its numbers could be read
}

// rule reads one rule of an action.
func (r *reader) rule(action string, name, fields *yaml.Node) guard.Rule {
	rr := &ruleReader{
		reader: r, where: clip(action) + "/" + clip(name.Value), rule: guard.Rule{Name: name.Value, OnOutage: guard.OutageLocal},
		name: name, seen: make(map[string]*yaml.Node), rates: make(map[string]rate),
	}
	if !validName(rr.rule.Name) {
		r.at(name, "%s: rule %s: want 1 to 32 of a-z, 0-9 and _", clip(action), describe(name))
	}
	before := len(r.list)
	r.entries(fields, rr.where, "a map of "+wantKeys, func(key, n *yaml.Node) {
		rr.seen[key.Value] = n
		if !r.refused[n] {
			rr.key(key, n)
		}
	})
	if fields.Kind != yaml.MappingNode || len(fields.Content) == 0 || len(rr.seen) < len(fields.Content)/2 {
		return rr.rule // a missing key may be one of the unreadable ones
	}
	rr.complete()
	rr.lawsAgree()
	rr.checkLimits(len(r.list) == before)
	if len(r.list) == before {
		r.sharedAgree(action, rr)
	}
	return rr.rule
}

// key reads the value n of one key.
func (rr *ruleReader) key(key, n *yaml.Node) {
	rule := &rr.rule
	switch key.Value {
	case "by":
		rule.By = rr.by(n, rr.where, "by")
	case "distinct":
		rule.Members = rr.by(n, rr.where, "distinct")
	case "limit":
		rr.windows(n, "limit", exact)
	case "counter":
		rr.windows(n, "counter", counter)
	case "fixed":
		rr.windows(n, "fixed", fixed)
	case "bucket":
		rr.place("bucket", n, limiter.TokenBucket{Capacity: rr.whole(n, rr.where, "bucket")})
	case "queue":
		rr.place("queue", n, limiter.LeakyBucket{Capacity: rr.whole(n, rr.where, "queue")})
	case "refill", "leak":
		rr.rates[key.Value] = rr.rate(n, rr.where, key.Value)
	case "backoff":
		rr.place("backoff", n, rr.backoff(n, rr.where))
	case "shared":
		if rule.Shared = n.Value; !isString(n) || !validName(n.Value) {
			rr.at(n, "%s: shared is %s, want 1 to 32 of a-z, 0-9 and _", rr.where, describe(n))
		}
	case "clients":
		rule.Clients = oneOf(rr.reader, n, rr.where, "clients", guard.AllClients, guard.UntrustedClients, guard.TrustedClients)
	case "counts":
		rule.Counts = oneOf(rr.reader, n, rr.where, "counts", guard.Attempts, guard.Failures)
	case "effect":
		rule.Effect = oneOf(rr.reader, n, rr.where, "effect", guard.Deny, guard.Challenge, guard.Silent, guard.Observe)
	case "on_outage":
		rule.OnOutage = oneOf(rr.reader, n, rr.where, "on_outage", guard.OutageLocal, guard.OutageDeny, guard.OutageAllow)
	default:
		delete(rr.seen, key.Value)
		rr.unknown(key, rr.where, ruleKeys, wantKeys)
	}
}

// unknown notes a key that is none of known.
func (r *reader) unknown(key *yaml.Node, where string, known []string, want string) {
	if near, ok := nearest(key.Value, known); ok {
		r.at(key, "%s: unknown key %s, did you mean %s?", where, describe(key), near)
	} else {
		r.at(key, "%s: unknown key %s, want %s", where, describe(key), want)
	}
}

// place appends a limit of the rule.
func (rr *ruleReader) place(field string, n *yaml.Node, l limiter.Limit) {
	rr.rule.Limits = append(rr.rule.Limits, l)
	rr.placed = append(rr.placed, placed{field: field, node: n, sound: true})
}

// by reads whom or, for distinct, what is counted.
func (r *reader) by(n *yaml.Node, where, field string) guard.By {
	by := guard.By(n.Value)
	if isString(n) && probe("x", by) {
		return by
	}
	if near, ok := nearest(n.Value, subjects); ok && isString(n) {
		r.at(n, "%s: %s is %s, did you mean %s?", where, field, describe(n), near)
	} else {
		r.at(n, "%s: %s is %s, want %s", where, field, describe(n), wantBy)
	}
	return ""
}

func validName(s string) bool { return probe(s, guard.Global) }

// probe asks the guard itself what it takes, by a rule that is otherwise valid:
// trusted clients may be counted by anything.
func probe(name string, by guard.By) bool {
	limit := limiter.FixedWindow{Limit: 1, Window: time.Second}
	return guard.Rule{Name: name, By: by, Clients: guard.TrustedClients, Limits: []limiter.Limit{limit}}.Validate() == nil
}
