//go:build unix

package chaos_test

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// outcome is what came of a scenario.
type outcome struct {
	report
	scenario scenario
	charged  map[account]int // by the store, at the end, of the ledger
	restarts int             // processes that ended, or would need a restart
}

// boundShared is how many units of a limit the store can have admitted when it
// lost its data so many times.
func boundShared(limit, losses int) int { return limit * (1 + losses) }

// boundAlone is how many more the processes can have admitted by themselves.
func boundAlone(limit int) int { return processes * max(1, limit/processes) }

// judge finds what did not hold.
func (o *outcome) judge() (broken []string) {
	fault := func(format string, args ...any) { broken = append(broken, fmt.Sprintf(format, args...)) }
	s := o.scenario
	for _, action := range []string{deny, local} {
		ips := map[netip.Addr]*tally{}
		for a, t := range o.Tallies[action] {
			if ips[a.ip()] == nil {
				ips[a.ip()] = new(tally)
			}
			ips[a.ip()].add(*t)
		}
		within := func(who any, limit int, t *tally) {
			if bound := boundShared(limit, s.losses); t.Shared > bound {
				fault("%s %v: the store admitted %d, the bound is %d", action, who, t.Shared, bound)
			}
			switch bound := boundAlone(limit); {
			case action == deny && t.Alone > 0:
				fault("%s %v: %d were admitted without the store", action, who, t.Alone)
			case t.Alone > bound:
				fault("%s %v: the processes alone admitted %d, the bound is %d", action, who, t.Alone, bound)
			}
		}
		for ip, t := range ips {
			within(ip, perIP, t)
		}
		for a, t := range o.Tallies[action] {
			within(a, perAccount, t)
			// Whoever was refused had used a limit up: nothing is charged twice.
			ip := ips[a.ip()]
			if s.succeed == 0 && t.Refused > 0 && t.Shared+t.Unknown < perAccount && ip.Shared+ip.Unknown < perIP {
				fault("%s %v: refused after %d units and %d unknown, %d and %d at its address", action, a, t.Shared, t.Unknown, ip.Shared, ip.Unknown)
			}
		}
	}
	for a, t := range o.Tallies[ledger] {
		if o.charged[a] > t.Shared+t.Unknown {
			fault("ledger %v: charged %d for %d admitted and %d unknown: some were charged twice", a, o.charged[a], t.Shared, t.Unknown)
		}
		if s.losses == 0 && o.charged[a] < t.Shared {
			fault("ledger %v: charged %d for %d admitted: some were lost", a, o.charged[a], t.Shared)
		}
	}
	unknown := o.sum(deny).Unknown + o.sum(local).Unknown + o.sum(ledger).Unknown
	if s.exact && (unknown > 0 || o.Unavailable > 0) {
		fault("%d attempts were not answered, %d of them sent", o.Unavailable, unknown)
	}
	if !s.exact && unknown == 0 {
		fault("nobody noticed a fault: nothing was tried")
	}
	logins := o.sum(deny)
	logins.add(o.sum(local))
	if logins.Shared == 0 || logins.Refused == 0 {
		fault("nothing was admitted, or nothing refused: nothing was tried")
	}
	if o.Late > 0 {
		fault("%d answers came later than %v and a fifth", o.Late, s.timeout())
	}
	if o.restarts > 0 {
		fault("%d processes need a restart", o.restarts)
	}
	slices.Sort(o.Wrong)
	for _, err := range slices.Compact(o.Wrong) {
		fault("no answer: %s", err)
	}
	return broken
}

// most is the largest number admitted for one account, and its bound.
func (o *outcome) most(action string) (most, bound int) {
	for _, t := range o.Tallies[action] {
		most = max(most, t.Shared+t.Alone)
	}
	bound = boundShared(perAccount, o.scenario.losses)
	if action == local && !o.scenario.exact {
		bound += boundAlone(perAccount)
	}
	return most, bound
}

// lost is how many units of the ledger the store has forgotten, at least.
func (o *outcome) lost() (lost int) {
	for a, t := range o.Tallies[ledger] {
		lost += max(0, t.Shared-o.charged[a])
	}
	return lost
}

// A judge who finds nothing is of no use.
func TestTheJudgeFindsWhatDoesNotHold(t *testing.T) {
	who := account{1, 2}
	good := func() *outcome {
		o := &outcome{charged: map[account]int{{0, 1}: 100}}
		*o.tally(deny, who) = tally{Shared: 10, Refused: 5, Unknown: 1}
		*o.tally(local, who) = tally{Shared: 10, Alone: 8}
		*o.tally(ledger, account{0, 1}) = tally{Shared: 99, Unknown: 1}
		return o
	}
	require.Empty(t, good().judge())
	for want, spoil := range map[string]func(*outcome){
		"deny g1-2: the store admitted 11, the bound is 10": func(o *outcome) { o.tally(deny, who).Shared++ },
		"deny g1-2: 1 were admitted without the store":      func(o *outcome) { o.tally(deny, who).Alone++ },
		"local g1-2: the processes alone admitted 9":        func(o *outcome) { o.tally(local, who).Alone++ },
		"local 10.1.0.0: the store admitted 51": func(o *outcome) {
			o.tally(local, account{1, 0}).Shared = 41
		},
		"refused after 8 units and 1 unknown": func(o *outcome) { o.tally(deny, who).Shared = 8 },
		"some were charged twice":             func(o *outcome) { o.charged[account{0, 1}] = 101 },
		"some were lost":                      func(o *outcome) { o.charged[account{0, 1}] = 98 },
		"1 answers came later than 500ms and": func(o *outcome) { o.Late = 1 },
		"1 processes need a restart":          func(o *outcome) { o.restarts = 1 },
		"no answer: strange":                  func(o *outcome) { o.Wrong = []string{"strange", "strange"} },
		"were not answered":                   func(o *outcome) { o.scenario.exact = true },
		"nobody noticed a fault": func(o *outcome) {
			o.tally(deny, who).Unknown, o.tally(ledger, account{0, 1}).Unknown = 0, 0
			o.charged[account{0, 1}] = 99
		},
		"nothing was admitted": func(o *outcome) { o.tally(deny, who).Refused = 0 },
	} {
		o := good()
		spoil(o)
		found := fmt.Sprint(o.judge())
		require.Contains(t, found, want)
	}
}

// Shares are those by which a guard counts locally.
func TestTheBoundAloneIsOfTheShares(t *testing.T) {
	for _, limit := range []int{1, 3, 4, 10, 50} {
		share := limiter.SlidingWindow{Limit: int64(limit), Window: time.Hour}.Share(processes).(limiter.SlidingWindow)
		require.EqualValues(t, boundAlone(limit), processes*share.Limit)
	}
}

func TestStallsAreWhatASleepTookTooLong(t *testing.T) {
	t0 := time.Now()
	at := func(ms int) time.Time { return t0.Add(time.Duration(ms) * time.Millisecond) }
	s := new(stalls)
	s.sleeps(at(0))
	s.sleeps(at(6)) // as usual
	require.Zero(t, s.since(at(0), at(10)))
	require.Equal(t, 89*time.Millisecond, s.since(at(0), at(100)), "a stall under way")
	s.sleeps(at(106))
	require.Equal(t, 95*time.Millisecond, s.since(at(0), at(107)), "a stall that is over")
	require.Equal(t, 6*time.Millisecond, s.since(at(100), at(107)), "only what is left of it")
	s.sleeps(at(3000))
	require.Zero(t, s.since(at(3000), at(3001)))
}
