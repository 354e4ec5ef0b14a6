package guard

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"authguard/limiter"
)

// settleWithin is how long a pass can give charges back: long enough for any
// password to be verified, short enough that a charge which stands longer can
// be relied on to stay.
const settleWithin = 10 * time.Second

// A Pass says that an attempt may go on, and takes note of how it ended: by
// the first call of Succeed, Fail, Cancel or Shed; later calls do nothing.
// It belongs to one request. A Pass never settled counts as a failure.
type Pass struct {
	// Account is the canonical name of the account that was charged; look the
	// account up by it, not by what was typed. It is empty if none was given or
	// what was given can be no name: then no account exists, and the attempt
	// must fail like any wrong one.
	Account string

	guard    *Guard
	policy   *policy
	limits   []ruleLimit      // what charges are for, one each
	charges  []limiter.Charge // the receipts
	shared   int              // charges[:shared] are in the store, the others in this process's memory
	checked  time.Time
	slots    [waitedSubjects]slot // of subjects that a success may give something back to
	inSlots  int
	id       uint64 // in records
	trusted  bool
	degraded bool // decided without the store, in part at least
	silenced bool
	settled  atomic.Bool
}

// Silenced reports that a rule with effect silent denies: the application
// answers as usual and does nothing.
func (p *Pass) Silenced() bool { return p.silenced }

// Trusted reports that the client is known as a device of the account
// (Attempt.Device). It proves nothing: the secret must be compared all the same.
func (p *Pass) Trusted() bool { return p.trusted }

// Succeed settles the attempt as a success: it gives the attempt's charges
// back on rules that count failures, and ends the streak of consecutive failures
// where a rule counts one, of the class of clients that
// the attempt was of. More than ten seconds after Check it gives nothing
// back. The error is only about the refund; the success stands.
func (p *Pass) Succeed(ctx context.Context) error {
	return p.settle(ctx, Succeeded, RecordSucceeded, func(i int) int64 {
		switch l := &p.limits[i]; {
		case !l.failures:
			return 0
		case l.clears:
			return limiter.MaxLimit
		}
		return p.charges[i].Cost
	})
}

// Fail settles the attempt as a failure. All its charges stand, and no store
// is asked.
func (p *Pass) Fail(ctx context.Context) error {
	return p.settle(ctx, Failed, RecordFailed, func(int) int64 { return 0 })
}

// Cancel settles an attempt that a fault of the application ended before the
// secret was compared: it gives all charges back. After the comparison it must
// not be called, for it would make guesses free.
func (p *Pass) Cancel(ctx context.Context) error {
	return p.settle(ctx, Cancelled, RecordCancelled, func(i int) int64 { return p.charges[i].Cost })
}

// Shed settles an attempt for which there was no room, before the secret was
// compared: it gives all charges back except those of the address on rules that
// count attempts, so that filling the room is not free for the client who does
// it. Nothing failed, so no rule that counts failures keeps anything.
func (p *Pass) Shed(ctx context.Context) error {
	return p.settle(ctx, Cancelled, RecordShed, func(i int) int64 {
		if l := &p.limits[i]; l.rule != ofToken && p.rule(i).Counts == Attempts && p.policy.kinds[l.kind].kind == kindIP {
			return 0
		}
		return p.charges[i].Cost
	})
}

// Settled reports whether it was said how the attempt ended.
func (p *Pass) Settled() bool { return p.settled.Load() }

// settle gives back, once, as much of each charge as refund says of its index.
func (p *Pass) settle(ctx context.Context, how EventKind, is RecordKind, refund func(int) int64) error {
	if p == nil || p.guard == nil {
		return errors.New("guard: this Pass was not made by Check")
	}
	if !p.settled.CompareAndSwap(false, true) {
		return nil
	}
	g := p.guard
	some := false
	for i := range p.charges {
		c := &p.charges[i]
		cost := refund(i)
		c.Cost, c.Taken = cost, c.Taken && cost > 0
		some = some || c.Taken
	}
	if some && g.now().Sub(p.checked) > settleWithin {
		g.observe(ctx, Event{Kind: Abandoned, Action: p.policy.action})
		some = false
	}
	g.observe(ctx, Event{Kind: how, Action: p.policy.action})
	g.records.ended(p, is)
	gaveBack := false
	defer func() { g.end(p, gaveBack) }()
	if !some {
		return nil
	}
	if ctx.Done() != nil { // the client may be gone, but what it is owed is not
		ctx = context.WithoutCancel(ctx)
	}
	if err := p.refund(ctx); err != nil {
		g.observe(ctx, Event{Kind: Broken, Action: p.policy.action, Err: err})
		return fmt.Errorf("guard: refund: %w", err)
	}
	gaveBack = true
	return nil
}

// refund gives back what is taken, where it was charged.
func (p *Pass) refund(ctx context.Context) (err error) {
	if p.shared > 0 {
		err = p.guard.store.Refund(ctx, p.charges[:p.shared])
	}
	return errors.Join(err, p.refundLocal(ctx))
}

func (p *Pass) refundLocal(ctx context.Context) error {
	local := p.charges[p.shared:]
	if len(local) == 0 {
		return nil
	}
	return p.guard.local.Refund(context.WithoutCancel(ctx), local)
}

// rule is the rule of the pass's i-th charge.
func (p *Pass) rule(i int) *Rule {
	if p.limits[i].rule == ofToken {
		return &onceRule
	}
	return &p.policy.rules[p.limits[i].rule]
}

// present is the index of a charge for the same subject as the i-th, under the
// present secret.
func (p *Pass) present(i int) int {
	if p.limits[i].previous {
		for j := range p.limits {
			if p.limits[j].rule == p.limits[i].rule && !p.limits[j].previous {
				return j
			}
		}
	}
	return i // also if that one was set aside
}

// Limits tell where the attempt's limits stand, in the order of the policy,
// leaving out rules that must not show (silent and observe). They are for
// clients that may know them: a key's own counters, never an account's on a
// route without authentication.
func (p *Pass) Limits() []Status { return statuses(p, showing) }
