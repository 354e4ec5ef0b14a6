package limiter

import "time"

// A Limit is one law with its numbers, such as five per fifteen minutes. Its
// methods are pure functions: they may be called from any goroutine and never
// panic, whatever they are given. Two equal Limits must behave alike, so a
// Limit is a comparable value.
//
// The promises that every law keeps, checked by limitertest.Law:
//
//  1. An admitted ask owes no wait.
//  2. A denied ask leaves the state as it was. Only when the clock stepped back
//     may it be mended, with instants of the future pulled to the present.
//  3. RetryAfter is exact: with no other traffic the same ask is admitted then,
//     and still denied one microsecond before.
//  4. Waiting never turns a yes into a no.
//  5. From ResetAfter on, forgetting the key changes no decision.
//  6. A refund takes back its own charge and nobody else's. Laws for which that
//     is exact, rather than capped, implement [ExactRefunder].
//  7. A cost beyond what could ever be admitted is [ErrCostTooHigh], not a wait.
//  8. When the numbers of a live key change, its state is read under the new
//     ones: nobody is set free by the change and nobody is locked out for ever.
//  9. Never more is admitted in any span of time than the law's formula permits.
type Limit interface {
	// Law is the law's name in lower case with underscores, for instance
	// "sliding_window". States of two laws never mix; callers that derive keys
	// put this name into them.
	Law() string

	// Validate says which of the numbers is out of range, naming it and its
	// value. The other methods return the same error.
	Validate() error

	// Take decides whether ask is admitted at now, given the state that the
	// last Take or Refund of this key left (empty: none). It fills in all of d,
	// which is the zero Decision on an error. It appends the state
	// that the key has if the ask is charged to dst and returns the longer
	// slice; when it appends nothing, the state stands as it is. It must not
	// modify state, and dst must not overlap it.
	//
	// An ask of cost 0 charges nothing: it is admitted, and its Decision tells
	// what is left.
	//
	// The error is ErrCostTooHigh, ErrState, or one about the numbers.
	//
	// d is no result because it would be copied on its way, which takes longer
	// than most laws do; [Decide] is for those who have the time.
	Take(d *Decision, dst, state []byte, now int64, ask Ask) ([]byte, error)

	// Refund takes back the charge of ask that stands under at (the At of the
	// Decision that admitted it), and appends the state that is left to dst.
	// Appending nothing means that the key may be forgotten. What has aged out
	// meanwhile is not refunded.
	Refund(dst, state []byte, now, at int64, ask Ask) ([]byte, error)
}

// Decide is l.Take with the decision as a result.
func Decide(l Limit, dst, state []byte, now int64, ask Ask) (d Decision, _ []byte, err error) {
	dst, err = l.Take(&d, dst, state, now, ask)
	return d, dst, err
}

// ExactRefunder marks laws whose refund restores exactly what the charge took,
// however late it comes: windows and counters do, buckets cannot (their refund
// is capped at the capacity). Only such laws can count failures by charging
// first and refunding a success.
type ExactRefunder interface{ ExactRefund() }

// Ask is what one charge wants of its limit.
type Ask struct {
	// Cost in the limit's units: requests, usually 1.
	Cost int64

	// Member is who is counted, for laws that count different members and not
	// requests. Other laws ignore it.
	Member string
}

// Decision is a law's answer to an ask.
type Decision struct {
	// Allowed says that this limit admits the ask. In a batch it is this
	// limit's own vote; whether the charge was made is Charge.Taken.
	Allowed bool

	// Limit is the most that the limit ever admits at one instant.
	Limit int64

	// Remaining is how many units would be admitted at At: after the charge if
	// it was made, otherwise as things are.
	Remaining int64

	// RetryAfter is zero when Allowed. Otherwise it is the exact wait, in whole
	// microseconds, after which the same ask is admitted if nothing else comes.
	RetryAfter time.Duration

	// Delay is how long an admitted ask should wait for its turn, by laws that
	// queue ([LeakyBucket]); zero by others.
	Delay time.Duration

	// Locked says that no wait helps, only recovery ([Backoff]). RetryAfter is
	// then merely when to look again.
	Locked bool

	// ResetAfter is when the limit is whole again, and the key can be forgotten
	// without changing any decision.
	ResetAfter time.Duration

	// At is the instant of the decision in microseconds since 1970, by the
	// store's clock; an admitted charge stands under it. Everything that is
	// told of the decision (Retry-After, reset times) counts from here.
	At int64
}

// NotAsked says that this limit was not asked, because another of its batch was
// known to deny (package denycache): it admits for all that is known, and nothing
// but At is filled in. Every limit that was asked has a Limit.
func (d Decision) NotAsked() bool { return d.Allowed && d.Limit == 0 }

// Time is At as a time.Time.
func (d Decision) Time() time.Time { return time.UnixMicro(d.At) }

// SuccessClearer marks laws of which a success takes back more than its own
// charge: the whole streak of failures, or all that is known of the member.
// A refund with a Cost of [MaxLimit] does so; one with the Cost that was
// charged takes back that charge alone.
type SuccessClearer interface{ ClearsOnSuccess() }
