package guard

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
	"strings"
	"sync"
	"time"

	"authguard/limiter"
)

// index notes in the store whom it refuses, so that an operator can list them. The
// charge that leaves nothing is noted, not the denials that it brings about: so many
// attempts as a flood has, it writes one note. What a note says of the subject is
// sealed by a key from the guard's secret.
type index struct {
	noter limiter.Noter // nil: the store keeps no lists
	seal  cipher.AEAD
	fault func(context.Context, error)

	mu      sync.Mutex
	waiting map[string]note // by key
	writing bool
}

// note is a subject that has nothing left of a limit.
type note struct {
	key, label string
	at         time.Time // of the charge, so that nobody's clock is read in the background
	until      time.Time
}

const (
	// worthNoting is how long a limit must take to be whole again. A client that
	// lives at the edge of a bucket by the second is no news, and would be noted
	// with each call.
	worthNoting = time.Minute

	// maxNotesWaiting bounds the notes that wait to be written; in a flood, the rest
	// is left out of listings.
	maxNotesWaiting = 256

	// maxLabel bounds what is kept of a name, in bytes.
	maxLabel = 256
)

func newIndex(store limiter.Store, secret []byte, fault func(context.Context, error)) (*index, error) {
	key, err := hkdf.Key(sha256.New, secret, nil, "authguard labels v1", 32)
	if err != nil {
		return nil, fmt.Errorf("guard: Secret: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	return &index{noter: limiter.NoterOf(store), seal: seal, fault: fault, waiting: map[string]note{}}, nil
}

// exhausted notes those of a pass's charges that have left nothing. It writes
// nothing itself, so that no attempt waits for it.
func (x *index) exhausted(p *Pass, a *Attempt, who *identity) {
	if x.noter == nil {
		return
	}
	for i := range p.charges[:p.shared] {
		c, l := &p.charges[i], &p.limits[i]
		if l.rule == ofToken || l.previous {
			continue // a token is nobody, and one note is enough
		}
		if !c.Taken || c.Decision.Remaining > 0 || c.Decision.ResetAfter < worthNoting || l.advisory > 0 {
			continue
		}
		kind := p.policy.kinds[l.kind]
		x.later(note{strings.Clone(c.Key), kind.label(a, who), c.Decision.Time(), c.Decision.Time().Add(c.Decision.ResetAfter)})
	}
}

// later has a note written soon.
func (x *index) later(n note) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, known := x.waiting[n.key]; !known && len(x.waiting) >= maxNotesWaiting {
		return
	}
	x.waiting[n.key] = n
	if !x.writing {
		x.writing = true
		go x.write()
	}
}

// write writes what waits, one message at a time, until there is no more.
func (x *index) write() {
	for {
		x.mu.Lock()
		notes := make([]note, 0, len(x.waiting))
		for _, n := range x.waiting {
			notes = append(notes, n)
		}
		clear(x.waiting)
		x.writing = len(notes) > 0
		x.mu.Unlock()
		if len(notes) == 0 {
			return
		}
		x.noteNow(context.Background(), notes...)
	}
}

// noteNow writes notes. One that fails costs a line of a listing.
func (x *index) noteNow(ctx context.Context, notes ...note) {
	if x.noter == nil {
		return
	}
	sealed := make([]limiter.Note, len(notes))
	for i, n := range notes {
		sealed[i] = limiter.Note{List: listOf(n.key), Key: n.key, Label: x.seal.Seal(nil, nil, padded(n.label), []byte(n.key)), At: n.at, Until: n.until}
	}
	if err := x.noter.Note(ctx, sealed); err != nil {
		x.fault(ctx, fmt.Errorf("noting who is refused: %w", err))
	}
}

// strike takes keys off their lists.
func (x *index) strike(ctx context.Context, keys []string) {
	if x.noter == nil {
		return
	}
	lists := map[string][]string{}
	x.mu.Lock()
	for _, key := range keys {
		delete(x.waiting, key)
		lists[listOf(key)] = append(lists[listOf(key)], key)
	}
	x.mu.Unlock()
	for list, keys := range lists {
		if err := x.noter.Strike(ctx, list, keys); err != nil {
			x.fault(ctx, fmt.Errorf("striking who is refused no more: %w", err))
		}
	}
}

// name is what a note's label says, or "" if it is not ours.
func (x *index) name(n limiter.Note) string {
	label, err := x.seal.Open(nil, nil, n.Label, []byte(n.Key))
	if err != nil {
		return ""
	}
	return strings.TrimRight(string(label), "\x00")
}

// listOf is the list of a key's limit.
func listOf(key string) string { return key[keyLen-limitTagLen:] }

// padded hides how long a label is, within 32 bytes.
func padded(label string) []byte {
	b := make([]byte, (len(label)/32+1)*32)
	copy(b, label)
	return b
}

// label is how an operator knows an attempt's subject of kind k. API keys are
// secrets, which are shown to nobody.
func (k subjectKind) label(a *Attempt, who *identity) string {
	label := ""
	switch k.kind {
	case kindAccount, kindDevice:
		label = who.account
	case kindIP:
		label = labelOfAddress(a, k.bits)
	case kindIPAccount:
		label = labelOfAddress(a, k.bits) + " " + who.account
	case kindTenant:
		label = a.Tenant
	case kindPart:
		label = a.Parts[k.part]
	}
	label = strings.ToValidUTF8(label[:min(len(label), maxLabel)], "")
	return strings.Clone(label) // what the attempt brought may be longer, and its caller's
}

func labelOfAddress(a *Attempt, bits int) string {
	if !a.IP.IsValid() {
		return "no address"
	}
	return prefix(a.IP, bits).String()
}
