package policies

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"authguard/guard"
)

// Explain tells what policies leave to somebody who guesses without pause: how
// many attempts of each action get through in an hour, a day, 30 days and a
// year, from one address or from any number, at one account or at all. Where a
// rule has effect silent, they are the mails that are really sent.
//
// The figures come from no formula. The attack is carried out, in virtual time,
// on a real guard over a store in memory: the guesser attempts whenever it is
// admitted and jumps to the end of each wait. It does so in several ways (see
// [Left]), and each figure is that of the best. So a figure is what somebody
// reaches for certain; that nobody can reach more is proven by it for windows,
// which no order of attempts gets around, and not for every mixture of laws.
//
// Each action is attacked for itself: figures of actions that share a streak do
// not add up. It is a matter of seconds, of minutes where very many attempts are admitted; ctx
// ends it early. Where a year has
// more attempts than that, the end of what was run goes on, and the [Figure]
// says that it is estimated.
func Explain(ctx context.Context, ps []guard.Policy) (Explanation, error) {
	return explain(ctx, ps, budget)
}

const (
	// budget is for how many admitted attempts one run of an attack goes on,
	// and at least for the longest time that the policy remembers.
	budget = 20_000

	// maxAttempts ends a run in any case: three days of one a second.
	maxAttempts = 260_000
)

// An Explanation is what [Explain] finds, in the order of the policies and of
// the guessers. Its String is a table.
type Explanation []Left

// Left is what an action's policy leaves to one guesser, who tries
//
//   - to attempt whenever admitted;
//   - to stop where a streak of failures begins to cost waits, or right before
//     its lock, and to go on with another account or when it is forgotten;
//   - where different accounts or addresses are counted, to prefer those that
//     are known already, or new ones;
//   - to begin right before the windows of the clock end.
type Left struct {
	Action  string
	Unit    Unit
	Guesser Guesser
	Network int // for IPv6Network: the length of its prefix
	Owner   Owner

	// From the first attempt on, which comes when the windows of the clock begin.
	Hour, Day, Days30, Year Figure

	// The most in any second, minute and hour, across windows of the clock too.
	AnySecond, AnyMinute, AnyHour Figure

	// LockedAfter is after how many attempts the account is locked if the
	// guesser never stops by itself, and LockedIn how long after the first.
	// 0 means never.
	LockedAfter int
	LockedIn    time.Duration

	// PauseAfter is not zero if stopping by itself brings the guesser the most in
	// a year: it leaves an account alone after so many attempts, to go on with
	// another or, if there is only one, for so long a Pause that they are forgotten.
	PauseAfter int64
	Pause      time.Duration

	// DevicesSpared says of a Botnet that nothing it does refuses an owner who
	// comes with a device cookie: the rules for trusted clients count nobody else.
	DevicesSpared bool

	// Asked says that rules ask the guesser for challenges, and Solver that it solves
	// them all, or pays somebody who does; otherwise it solves none. There is a row
	// of a solver where that brings more than the row before it.
	Asked, Solver bool
}

// Figure is a number of attempts.
type Figure struct {
	N int64

	// Estimated says that what was run goes on like this: N is rounded to three
	// digits.
	Estimated bool

	// Unbounded says that no rule was seen to bound the guesser: there may be
	// any number more than N.
	Unbounded bool
}

// Unit is what the figures of an action count.
type Unit string

// The units.
const (
	Guesses  Unit = "guesses"  // a rule counts failures
	Mails    Unit = "mails"    // a rule has effect silent
	Attempts Unit = "attempts" // all others
)

// Guesser is what somebody who guesses has and wants.
type Guesser string

// The guessers. Each account has an API key of its own; all attempts have the
// same tenant and the same named parts.
const (
	OneAddress  Guesser = "one address, one account"
	AllAccounts Guesser = "one address, all accounts"
	IPv6Network Guesser = "one IPv6 network, all accounts" // the widest that a rule counts by
	Botnet      Guesser = "botnet, one account"            // any number of addresses
	BotnetAll   Guesser = "botnet, all accounts"           // each as often as it likes; there if a rule counts all together

	// StolenDevice has a device cookie of the account, made when the attack
	// begins, and any number of addresses. It is there if a rule counts trusted
	// clients apart; all other guessers are untrusted.
	StolenDevice Guesser = "stolen device cookie, one account"
)

// Owner is what the owner of the one account does meanwhile. Of all accounts,
// there is always one whose owner does nothing.
type Owner string

// The owners.
const (
	AnyOwner Owner = ""     // does whatever they like: no rule counts failures of an account
	Idle     Owner = "idle" // never comes

	// LoggingIn comes once a day, 12 hours into each day of the attack, from an
	// address of their own, as an untrusted client or, against a StolenDevice, on
	// another device. If refused, they wait as they are told, and are then
	// the first; only a lock sends them away until the next day. Succeeding ends
	// a streak of failures.
	LoggingIn Owner = "logging in"
)

// explain is Explain with another budget.
func explain(ctx context.Context, ps []guard.Policy, budget int) (Explanation, error) {
	var (
		all   Explanation
		wg    sync.WaitGroup
		slots = make(chan struct{}, runtime.GOMAXPROCS(0))
		fill  []func() error
	)
	for _, p := range ps {
		if err := p.Validate(); err != nil {
			return nil, fmt.Errorf("policies: explain: %w", err)
		}
		results := make(map[scenario]*result) // guessers whom the policy cannot tell apart fare alike
		for _, row := range rows(p) {
			of := classOf(p, row.Guesser == StolenDevice)
			s := reduce(of, row)
			res := results[s]
			if res == nil {
				res = &result{}
				results[s] = res
				wg.Go(func() {
					slots <- struct{}{}
					defer func() { <-slots }()
					*res = (&campaign{whole: p, policy: of, scenario: s, budget: budget}).result(ctx)
					if res.asked {
						solver := &campaign{whole: p, policy: unlifted(of), scenario: reduce(unlifted(of), row), budget: budget}
						solver.scenario.solves = true
						r := solver.result(ctx)
						res.solved = &r
					}
				})
			}
			at := len(all)
			all = append(all, row)
			fill = append(fill, func() error {
				from := res
				if row.Solver && res.solved != nil {
					from = res.solved
				}
				from.into(&all[at])
				return from.err
			})
		}
	}
	wg.Wait()
	for i, f := range fill {
		if err := f(); err != nil {
			return nil, fmt.Errorf("policies: explain %s, %s: %w", all[i].Action, all[i].Guesser, err)
		}
	}
	return slices.CompactFunc(all, solvedInVain), nil
}

// solvedInVain reports that l is a solver who gets what the one before does, who is
// none.
func solvedInVain(l, before Left) bool {
	before.Solver = true
	return l == before
}
