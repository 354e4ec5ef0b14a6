package guard

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"authguard/limiter"
)

// BlockedRule is the rule, in every policy, by which an attempt is refused whose
// account or address is blocked ([Guard.Block]), as in "login/blocked". No other
// rule may have the name.
const BlockedRule = "blocked"

// A Subject is whom an operator means: an account, or an address. An IPv6 address
// stands for its /64, as in rules by ip.
type Subject struct {
	Account string
	IP      netip.Addr
}

// MaxBlock is the longest block; who shall never come back belongs into [Lists].
const MaxBlock = limiter.MaxBlock

const minBlock = time.Second

// Block refuses all attempts of who for so long from now, 1 s to 366 days, in every
// process that shares the store and from the moment that Block returns. An account
// is blocked in the actions that count by account, an address in all, known devices
// and addresses of the allow list included. Nothing is charged meanwhile, and a
// password reset does not lift it ([Guard.Unlock]): [Guard.Unblock] does. Of two
// blocks the longer one stands.
//
// While the store is down, a rule with OutageLocal or OutageAllow lets those pass
// whom other processes have blocked; what this process has blocked it remembers,
// also when Block returns [ErrUnavailable].
func (g *Guard) Block(ctx context.Context, who Subject, duration time.Duration) error {
	if duration < minBlock || duration > MaxBlock {
		return fmt.Errorf("guard: a block is for %v, want %v to %v", duration, minBlock, MaxBlock)
	}
	b, err := g.blockable(ctx, who)
	if err != nil {
		return err
	}
	for i, key := range b.keys {
		d, err := g.block(ctx, key, limiter.Block{For: duration.Truncate(time.Microsecond)})
		if err != nil {
			return g.unavailable(ctx, "", err)
		}
		if i == 0 {
			g.observe(ctx, Event{Kind: Blocked, By: b.by, Subject: subjectOf(key), RetryAfter: d.ResetAfter})
			g.index.noteNow(ctx, note{key: key, label: b.label, at: d.Time(), until: d.Time().Add(d.ResetAfter)})
		}
	}
	return nil
}

// block writes one key, here and in the store.
func (g *Guard) block(ctx context.Context, key string, limit limiter.Block) (limiter.Decision, error) {
	charge := func() []limiter.Charge {
		return []limiter.Charge{{Key: key, Limit: limit, Ask: limiter.Ask{Cost: 1}}}
	}
	if _, err := g.local.Take(ctx, charge()); err != nil {
		return limiter.Decision{}, err
	}
	for range 4 {
		c := charge()
		ok, err := g.store.Take(ctx, c)
		// A no is that of a longer block, or of a crowd on the key (Memcached).
		if d := c[0].Decision; err != nil || ok || d.ResetAfter > limit.For {
			return d, err
		}
	}
	return limiter.Decision{}, errors.New("others keep writing the key")
}

// Unblock ends a block of who, if there is one, in every process that shares the
// store; one with a cache before it hears of it within milliseconds while its
// channel lives. It lifts nothing else. For outages of the
// store, another process that has blocked who remembers it until it would have ended.
func (g *Guard) Unblock(ctx context.Context, who Subject) error {
	b, err := g.blockable(ctx, who)
	if err != nil {
		return err
	}
	if err := errors.Join(g.local.Forget(ctx, b.keys), g.store.Forget(ctx, b.keys)); err != nil {
		return g.unavailable(ctx, "", err)
	}
	g.index.strike(ctx, b.keys)
	g.observe(ctx, Event{Kind: Unblocked, By: b.by, Subject: subjectOf(b.keys[0])})
	return nil
}

// SameClient reports that a block of either address is one of the other.
func SameClient(a, b netip.Addr) bool { return prefix(a, defaultV6Bits) == prefix(b, defaultV6Bits) }

// blocked is a subject as it is blocked: by one key for each of the guard's secrets,
// of which the present one's is the first.
type blocked struct {
	by    By
	keys  []string
	label string
}

var (
	blockedAddress, _ = ByIP.parse()
	blockedAccount, _ = ByAccount.parse()
)

func (g *Guard) blockable(ctx context.Context, who Subject) (blocked, error) {
	switch {
	case g == nil || g.store == nil:
		return blocked{}, fmt.Errorf("%w: the guard is zero", ErrNoPolicy)
	case who.Account != "" && who.IP.IsValid():
		return blocked{}, errors.New("guard: Subject has an Account and an IP, want one of them")
	case who.IP.IsValid():
		keys := g.blockKeys(ByIP, blockedAddress, &Attempt{IP: who.IP}, &identity{})
		return blocked{ByIP, keys, prefix(who.IP, blockedAddress.bits).String()}, nil
	}
	id, err := g.identifyAccount(ctx, "", who.Account)
	if err != nil {
		return blocked{}, err
	}
	if id.account == "" {
		return blocked{}, fmt.Errorf("%w: no account and no address to block", ErrMissing)
	}
	return blocked{ByAccount, g.blockKeys(ByAccount, blockedAccount, &Attempt{}, &id), id.account}, nil
}

func (g *Guard) blockKeys(by By, kind subjectKind, a *Attempt, who *identity) []string {
	var keys []string
	for _, h := range g.hashes {
		keys = append(keys, h.blockKey(by).of(h.subjects(nil, []subjectKind{kind}, a, who)[0]))
	}
	return keys
}

// blockKey is the key of blocks but for the subject. No action has such a name.
func (h *hasher) blockKey(by By) storeKey {
	return h.key("blocked subjects", string(by), 0, limiter.Block{}.Law())
}

// addBlocks has every attempt ask, in the call of the store that it makes anyway,
// whether its account or its address is blocked. The address's come last in each
// class, one for each secret: attempts without an address do without them.
func (c *policy) addBlocks(hashes []*hasher) {
	if c.countsAccounts {
		c.addBlock(ByAccount, blockedAccount, hashes)
	}
	anonymous := len(c.anonymous) > 0 // else an attempt without an account is no attempt
	c.addBlock(ByIP, blockedAddress, hashes)
	if !anonymous {
		c.anonymous = nil
	}
}

func (c *policy) addBlock(by By, kind subjectKind, hashes []*hasher) {
	k := c.kind(kind)
	for secret, hash := range hashes {
		c.add(ruleLimit{
			rule: len(c.rules), kind: k, subject: secret*len(c.kinds) + k, members: -1, previous: secret > 0,
			limit: limiter.Block{}, local: limiter.Block{}, key: hash.blockKey(by),
		}, AllClients, kind)
	}
	c.rules = append(c.rules, Rule{Name: BlockedRule, By: by, Limits: []limiter.Limit{limiter.Block{}}, OnOutage: OutageLocal})
}
