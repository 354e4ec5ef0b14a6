package policies

import (
	"container/heap"
	"fmt"

	"authguard/guard"
)

// denied works out who must wait how long.
func (a *attack) denied(l *lane, who *identity, denying []guard.Status) error {
	var until [levels]int64
	for _, s := range denying {
		a.asked = a.asked || s.Effect == guard.Challenge
		wait := s.Decision.RetryAfter
		if s.Decision.Locked {
			wait = s.Decision.ResetAfter // RetryAfter is only when to look again
			if a.lockedAt == 0 {
				a.lockedAt = len(a.admitted)
			}
		}
		if wait <= 0 {
			return fmt.Errorf("%s/%s denies without a wait", a.policy.Action, s.Rule)
		}
		at := a.now + wait.Microseconds()
		r, whom := a.rules[s.Rule], a.level(s.By)
		if distinct(r) && a.level(r.Members) == itself {
			// Others, who are known, may go on, but nobody new.
			if whom == everybody {
				a.noNew = max(a.noNew, at)
			} else if whom == itsLane {
				l.noNew = max(l.noNew, at)
			}
			whom = itself
		}
		until[whom] = max(until[whom], at)
		if s.Decision.Locked && whom == itself {
			until[itself] = never
		}
	}
	a.blocked = max(a.blocked, until[everybody])
	l.blocked = max(l.blocked, until[itsLane])
	who.ready = max(a.now, until[itself])
	if who.used && who.ready < never {
		heap.Push(&l.known, who)
	}
	return nil
}
