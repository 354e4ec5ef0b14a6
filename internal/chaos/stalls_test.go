//go:build unix

package chaos_test

import (
	"sync"
	"time"
)

// stalls are the times when this process did not run though it was ready to: the
// machine has two cores and more to do than it can. They are seen by a control
// that asks no store anything, and only sleeps beside the load. What an answer
// takes beyond them is our own doing.
type stalls struct {
	mu    sync.Mutex
	began time.Time // of the control's sleep under way
	last  []stall
}

type stall struct {
	end  time.Time
	took time.Duration
}

const (
	nap       = 5 * time.Millisecond
	keptSince = 2 * time.Second
)

// watch watches for ever.
func (s *stalls) watch() {
	for {
		s.sleeps(time.Now())
		time.Sleep(nap)
	}
}

// sleeps ends a sleep of the control and begins the next.
func (s *stalls) sleeps(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if over := overslept(s.began, now); over > 0 && !s.began.IsZero() {
		s.last = append(s.last, stall{now, over})
	}
	for len(s.last) > 0 && now.Sub(s.last[0].end) > keptSince {
		s.last = s.last[1:]
	}
	s.began = now
}

// overslept is by how much a sleep since began is too long now, if it is by much.
func overslept(began, now time.Time) time.Duration {
	if over := now.Sub(began) - nap; over > nap {
		return over
	}
	return 0
}

// since is how long the process was stalled between an instant and now.
func (s *stalls) since(t, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := overslept(s.began, now)
	for _, one := range s.last {
		if one.end.After(t) {
			sum += min(one.took, one.end.Sub(t))
		}
	}
	return min(sum, now.Sub(t))
}
