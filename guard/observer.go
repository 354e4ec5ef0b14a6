package guard

import (
	"context"
	"time"
)

// An Observer is told of every decision, outside any lock, on the goroutine
// that asked: it must be quick and safe for concurrent use.
type Observer interface {
	Observe(ctx context.Context, e Event)
}

// Observers are told one after the other.
type Observers []Observer

// Observe implements [Observer].
func (os Observers) Observe(ctx context.Context, e Event) {
	for _, o := range os {
		o.Observe(ctx, e)
	}
}

// An Event is one thing that a guard decided. It holds no name and no address.
type Event struct {
	Kind   EventKind
	Action string
	Rule   string // for Refused, Silenced and Observed: the rule that denies; for Unlocked and Broken: the only one concerned, or ""
	// Subject is the keyed hash of whom the rule counts: the same for the same
	// subject, and no use to anybody without the guard's secret.
	Subject    string
	By         By            // for Blocked and Unblocked, and where a deny list refuses: ByAccount or ByIP
	RetryAfter time.Duration // for Refused, Silenced and Observed; for Blocked: how long
	More       bool          // for Refused: another rule denies the same attempt and is told next
	Err        error         // for Broken, Unverified and Unnoted
}

// EventKind is what an Event tells.
type EventKind uint8

const (
	Admitted    EventKind = iota + 1 // an attempt may go on
	Refused                          // an attempt was refused; one event for each rule that denies
	Silenced                         // a rule with effect silent denied
	Observed                         // a rule denied that did not refuse: with effect observe, or challenge (solved, or by all together and none can be asked for)
	Succeeded                        // a pass was settled as a success
	Failed                           // a pass was settled as a failure
	Cancelled                        // a pass was given back
	Abandoned                        // a success came too late for its refund
	Unlocked                         // an account's counters were cleared
	Unaddressed                      // an attempt came without a client address
	Broken                           // the store or the resolver failed: Err says how
	Degraded                         // an attempt is decided without the store, by its rules' OnOutage
	Unavailable                      // an attempt was refused because its limits cannot be checked
	Solved                           // an attempt was admitted with the answer to a challenge
	Unsolved                         // an answer to a challenge is wrong, expired, somebody else's or used up
	Unverified                       // the Challenger failed: Err says how
	Blocked                          // an account or address was blocked, in all actions
	Unblocked                        // a block was ended
	Unnoted                          // the index of refused subjects could not be written: Err says why; no limit is concerned
)

var eventNames = [...]string{
	Admitted: "admitted", Refused: "refused", Silenced: "silenced", Observed: "observed",
	Succeeded: "succeeded", Failed: "failed", Cancelled: "cancelled", Abandoned: "abandoned",
	Unlocked: "unlocked", Unaddressed: "unaddressed", Broken: "broken", Degraded: "degraded",
	Unavailable: "unavailable", Solved: "solved", Unsolved: "unsolved", Unverified: "unverified",
	Blocked: "blocked", Unblocked: "unblocked", Unnoted: "unnoted",
}

func (k EventKind) String() string {
	if int(k) < len(eventNames) && k > 0 {
		return eventNames[k]
	}
	return "unknown"
}
