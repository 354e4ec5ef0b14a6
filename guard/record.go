package guard

import (
	"math/rand/v2"
	"time"
)

// A Recorder is told of every attempt and of how it ended, so that other policies
// can be tried on what has happened: see packages recording and replay. What a
// deny list refuses is no matter of policies, and is not told. It is
// called on the goroutine that asked: it must be quick and safe for concurrent use.
type Recorder interface {
	Record(r Record)
}

// A Record is one thing that happened to an attempt: what was asked and decided, or
// how it ended. Who was concerned stands in it under keyed hashes, 16 characters
// each, whose key is derived from Config.Secret for records alone: the same for the
// same subject in all actions and processes, no use without the secret, and not the
// hash by which a store or an [Event] knows the subject, so that they cannot be joined.
type Record struct {
	At     time.Time  `json:"at"`
	Is     RecordKind `json:"is"`
	ID     uint64     `json:"id,string,omitempty"` // random; tells attempts apart, and their ends
	Action string     `json:"action,omitempty"`

	// Account is that of the attempt, or the one that was unlocked. Where no rule of
	// the action tells accounts apart, it is hashed by its name, for nobody has asked
	// for its id, and nobody is trusted.
	Account string `json:"account,omitempty"`

	// IP is an IPv4 address or an IPv6 /64, and Networks are the wider ones around an
	// IPv6 address, in the order of RecordedPrefixes.
	IP       string   `json:"ip,omitempty"`
	Networks []string `json:"networks,omitempty"`

	Device string            `json:"device,omitempty"` // of the account, which makes the client a trusted one
	APIKey string            `json:"api_key,omitempty"`
	Tenant string            `json:"tenant,omitempty"`
	Parts  map[string]string `json:"parts,omitempty"`
	Cost   int64             `json:"cost,omitempty"` // 0 means 1

	// Rules are those that denied, those with effect silent or observe included; or
	// the one that was unlocked.
	Rules []string `json:"rules,omitempty"`
}

// RecordedPrefixes are the lengths of the IPv6 networks in a Record, beside the
// /64 in its IP.
var RecordedPrefixes = [...]int{32, 48, 56}

// RecordKind is what a Record tells.
type RecordKind string

const (
	// What was decided.
	RecordAdmitted    RecordKind = "admitted"
	RecordSilenced    RecordKind = "silenced" // admitted, and a rule with effect silent denied
	RecordRefused     RecordKind = "refused"
	RecordUnavailable RecordKind = "unavailable" // refused, because the store did not answer

	// How an attempt that was admitted ended. There is none for a pass that nobody settles.
	RecordSucceeded RecordKind = "succeeded"
	RecordFailed    RecordKind = "failed"
	RecordCancelled RecordKind = "cancelled"
	RecordShed      RecordKind = "shed"

	// Not an attempt: an account's counts were cleared.
	RecordUnlocked RecordKind = "unlocked"
)

// recorded are the subjects in a record.
var recorded = append([]subjectKind{{kind: kindAccount}, {kind: kindDevice}, {kind: kindAPIKey}, {kind: kindTenant}, {kind: kindIP, bits: defaultV6Bits}},
	func() (networks []subjectKind) {
		for _, bits := range RecordedPrefixes {
			networks = append(networks, subjectKind{kind: kindIP, bits: bits})
		}
		return networks
	}()...)

// records tells a Recorder. A nil *records tells nobody.
type records struct {
	to   Recorder
	hash *hasher
	now  func() time.Time
}

func newRecords(to Recorder, secret []byte, now func() time.Time) (*records, error) {
	if to == nil {
		return nil, nil
	}
	h, err := newHasher(secret, "records v1")
	return &records{to, h, now}, err
}

// asked tells what was decided of an attempt.
func (r *records) asked(p *Pass, a *Attempt, who *identity, is RecordKind) {
	if r == nil {
		return
	}
	p.id = max(1, rand.Uint64())
	rec := Record{At: p.checked, Is: is, ID: p.id, Action: p.policy.action, Cost: a.Cost}
	if rec.At.IsZero() { // it was not admitted
		rec.At = r.now()
	}
	var buf [len(RecordedPrefixes) + 5]subjectHash
	s := r.hash.subjects(buf[:0], recorded, a, who)
	for i, text := range []*string{&rec.Account, &rec.Device, &rec.APIKey, &rec.Tenant} {
		*text = s[i].text()
	}
	if a.IP.IsValid() {
		rec.IP = s[4].text()
		if !a.IP.Unmap().Is4() {
			for _, network := range s[5:] {
				rec.Networks = append(rec.Networks, network.text())
			}
		}
	}
	for name, v := range a.Parts {
		if rec.Parts == nil {
			rec.Parts = make(map[string]string, len(a.Parts))
		}
		part := r.hash.end(r.hash.begin(kindPart).part(name).part(v))
		rec.Parts[name] = part.text()
	}
	for i := range p.charges {
		c := &p.charges[i]
		if (c.Advisory > 0) == (is != RecordRefused) && !c.Decision.Allowed && is != RecordUnavailable {
			rec.Rules = addRule(rec.Rules, p.rule(i).Name, false)
		}
	}
	r.to.Record(rec)
}

// ended tells how a pass was settled.
func (r *records) ended(p *Pass, is RecordKind) {
	if r != nil {
		r.to.Record(Record{At: r.now(), Is: is, ID: p.id})
	}
}

// unlocked tells that the counts of an account were cleared.
func (r *records) unlocked(who *identity, action, rule string) {
	if r == nil {
		return
	}
	s := r.hash.subjects(nil, recorded[:1], &Attempt{}, who)
	rec := Record{At: r.now(), Is: RecordUnlocked, Action: action, Account: s[0].text()}
	if rule != "" {
		rec.Rules = []string{rule}
	}
	r.to.Record(rec)
}

// text is the hash, or "" if there is no subject.
func (s *subjectHash) text() string {
	if *s == (subjectHash{}) {
		return ""
	}
	return string(s[:])
}
