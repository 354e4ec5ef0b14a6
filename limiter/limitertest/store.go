package limitertest

import (
	"testing"
	"time"

	"authguard/limiter"
)

// Store checks that what open makes is a [limiter.Store] and keeps its
// contract: whole batches or nothing, no two keys confused, refunds that are
// exact and made once, one reading of the clock a call, histories replayed with
// equal decisions, and no unit too many whatever runs at the same time. Run it
// with -race.
//
// It opens many stores. Each must be empty at first, or keep keys of its own,
// and read the clock that it is given instead of the time of day. What a store
// has besides the contract (bounds, faults, expiry) needs tests of its own.
func Store(t *testing.T, open func(t *testing.T, now func() time.Time) limiter.Store) {
	check(t, open, false)
}

// CompensatingStore is [Store] for one that cannot decide a batch at one instant,
// because its keys lie on several servers, say, or are written one after the other:
// it gives back what it has charged when a later limit denies. It keeps the same
// promises, except that
//
//   - a refused batch may for a moment hold units, and a call may be denied although
//     units are left, when too many come at one time. Never is one too many admitted;
//     when all is quiet the counts are exact, and who comes again is admitted;
//   - the decisions of a batch may have several instants, each with its own At.
func CompensatingStore(t *testing.T, open func(t *testing.T, now func() time.Time) limiter.Store) {
	check(t, open, true)
}

func check(t *testing.T, open func(t *testing.T, now func() time.Time) limiter.Store, compensating bool) {
	for _, test := range []struct {
		name  string
		check func(*rig)
	}{
		{"the last unit is the last", lastUnit},
		{"one denial charges nobody", allOrNothing},
		{"keys share nothing", keysShareNothing},
		{"each limit tells its own wait", ownWaits},
		{"a denial tells the others as they are", othersAsTheyAre},
		{"what is no batch is an error and charges nothing", noBatch},
		{"a cost above the limit is an error and charges nothing", costTooHigh},
		{"peek tells what take will say and changes nothing", peekTells},
		{"a refund is exact and made once", refundOnce},
		{"a refund leaves alone what was not taken", refundUntaken},
		{"a refund after forgetting gives nothing", refundForgotten},
		{"a refund without a limit is an error and gives nothing", refundOfNothing},
		{"forget drops the keys and no others", forget},
		{"advisory charges do not vote", advisoryDoNotVote},
		{"advisory groups are taken whole or not at all", advisoryGroups},
		{"advisory charges are not taken when the vote denies", advisoryDenied},
		{"hostile keys are all different", hostileKeys},
		{"windows of any length", windows},
		{"numbers may change on a live key", numbersChange},
		{"a cancelled context charges nothing", cancelled},
		{"the clock may be set back", clockBack},
		{"the clock may be set forward", clockForward},
		{"what is told belongs to one instant", oneInstant},
		{"a block is exact and its check writes nothing", blocks},
		{"random sequences decide as a map does", randomSequences},
		{"a thousand at one instant get the limit", thousandAtOnce},
		{"overlapping batches in any order", overlappingBatches},
		{"takes and refunds at one time", takeAndRefund},
		{"blocks, checks and their end at one time", blocksAtOneTime},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t, open)
			r.compensating = compensating
			test.check(r)
		})
	}
	t.Run("traces", func(t *testing.T) { Traces(t, open) })
}

var (
	five    = limiter.SlidingWindow{Limit: 5, Window: 15 * time.Minute}
	twenty  = limiter.SlidingWindowCounter{Limit: 20, Window: time.Hour}
	bucket  = limiter.TokenBucket{Capacity: 10, Refill: 1, Per: time.Second}
	hundred = limiter.FixedWindow{Limit: 100, Window: time.Minute}
)

// oneOfEach is a limit of every law.
var oneOfEach = []limiter.Limit{five, twenty, bucket, hundred}
