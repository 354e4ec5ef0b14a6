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
		text     [smallLimits * textLen]byte
	}
	usualPass struct {
		Pass
		receipts [usualLimits]limiter.Charge
		text     [usualLimits * textLen]byte
	}
)

const (
	smallLimits = 3
	usualLimits = 9
	textLen     = keyLen + limiter.MemberBytes
)

// newPass asks cost of each limit of p, for the subjects of p's kinds.
func newPass(p *policy, limits []ruleLimit, subjects []subjectHash, cost int64) (*Pass, error) {
	var pass *Pass
	var text []byte
	switch n := len(limits); {
	case n == 0:
		return nil, fmt.Errorf("%w: %s", ErrNoAccount, p.action)
	case n <= smallLimits:
		m := new(smallPass)
		pass, m.charges, text = &m.Pass, m.receipts[:n], m.text[:]
	case n <= usualLimits:
		m := new(usualPass)
		pass, m.charges, text = &m.Pass, m.receipts[:n], m.text[:]
	default:
		pass, text = &Pass{charges: make([]limiter.Charge, n)}, make([]byte, n*textLen)
	}
	pass.policy, pass.limits = p, limits
	for i := range limits {
		l, c := &limits[i], &pass.charges[i]
		s := &subjects[l.kind]
		if *s == (subjectHash{}) {
			r := &p.rules[l.rule]
			return nil, fmt.Errorf("%w: %s/%s counts by %s", ErrMissing, p.action, r.Name, r.By)
		}
		key := text[:keyLen]
		copy(key, keyPrefix)
		copy(key[len(keyPrefix):], s[:])
		copy(key[len(keyPrefix)+subjectLen:], l.suffix)
		c.Key, text = written(key), text[keyLen:]
		if l.members >= 0 { // attempts that lack a member count as one
			member := text[:limiter.MemberBytes]
			copy(member, subjects[l.members][:])
			c.Member, text = written(member), text[limiter.MemberBytes:]
		}
		c.Limit, c.Cost, c.Advisory = l.limit, cost, l.advisory
	}
	return pass, nil
}

// written is text as a string. Nobody writes there again.
func written(text []byte) string { return unsafe.String(unsafe.SliceData(text), len(text)) }
