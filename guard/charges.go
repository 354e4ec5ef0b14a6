package guard

import (
	"fmt"
	"unsafe"

	"authguard/limiter"
)

// A pass, its charges and the text of their keys are one piece of memory, since an
// attempt costs the garbage collector by the piece. There are two sizes, of which
// the larger holds what a login is charged; more limits take pieces of their own.
type (
	smallPass struct {
		Pass
		receipts [smallLimits]limiter.Charge
		texts    [smallLimits]chargeText
	}
	usualPass struct {
		Pass
		receipts [usualLimits]limiter.Charge
		texts    [usualLimits]chargeText
	}
)

const (
	smallLimits = 5
	usualLimits = 12
)

// chargeText is what the strings of a charge point to.
type chargeText struct {
	key    storeKey
	member [limiter.MemberBytes]byte
}

// newPass asks cost of each limit of p, for the subjects of p's kinds.
func newPass(p *policy, limits []ruleLimit, subjects []subjectHash, cost int64) (*Pass, error) {
	var pass *Pass
	var texts []chargeText
	switch n := len(limits); {
	case n == 0:
		return nil, fmt.Errorf("%w: %s", ErrNoAccount, p.action)
	case n <= smallLimits:
		m := new(smallPass)
		pass, m.charges, texts = &m.Pass, m.receipts[:n], m.texts[:n]
	case n <= usualLimits:
		m := new(usualPass)
		pass, m.charges, texts = &m.Pass, m.receipts[:n], m.texts[:n]
	default:
		pass, texts = &Pass{charges: make([]limiter.Charge, n)}, make([]chargeText, n)
	}
	pass.policy, pass.limits = p, limits
	for i := range limits {
		l, c, text := &limits[i], &pass.charges[i], &texts[i]
		s := &subjects[l.subject]
		if *s == (subjectHash{}) {
			r := &p.rules[l.rule]
			return nil, fmt.Errorf("%w: %s/%s counts by %s", ErrMissing, p.action, r.Name, r.By)
		}
		text.key = l.key
		text.key.subject = *s
		c.Key = text.key.text()
		if l.members >= 0 { // attempts that lack a member count as one
			text.member = [limiter.MemberBytes]byte(subjects[l.members][:])
			c.Member = unsafe.String(&text.member[0], len(text.member))
		}
		c.Limit, c.Cost, c.Advisory = l.limit, cost, l.advisory
	}
	return pass, nil
}

// text is k as a string of the same memory, which must not be written any more.
func (k *storeKey) text() string { return unsafe.String(&k.prefix[0], keyLen) }

// of is the key of k's limit for a subject.
func (k storeKey) of(s subjectHash) string {
	k.subject = s
	return k.text()
}
