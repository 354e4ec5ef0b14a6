package flood

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"authguard/guard"
)

const (
	perSecond = 20_000 // guesses
	victims   = 200    // accounts, whose failures are used up
	botnet    = 10_000 // addresses
	atOnce    = 1_000  // guesses under way, as a server bounds its connections
)

// An attack guesses at victims' passwords, each guess in a goroutine of its own, as
// requests come to a server.
type attack struct {
	site    *site
	stopped chan struct{}
	running sync.WaitGroup

	sent, underWay, denied, unanswered, busy, wrong atomic.Int64

	failed atomic.Pointer[error]
}

// exhaust uses up the failures of the victims, without computing any.
func exhaust(s *site) error {
	if s.guard == nil {
		return nil
	}
	for i := range victims {
		for range 5 {
			pass, err := s.guard.Check(context.Background(), guard.Attempt{Action: "login", Account: victim(i), IP: bot(i)})
			if err != nil {
				return fmt.Errorf("while using victims up: %w", err)
			}
			pass.Fail(context.Background())
		}
	}
	return nil
}

func victim(i int) string { return fmt.Sprintf("victim%d@example.com", i%victims) }
func bot(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18, byte(i % botnet >> 8), byte(i % botnet)})
}

// start begins the flood. Guesses that the clock missed are made up for; those that
// would be too many at once are not made.
func start(s *site) *attack {
	a := &attack{site: s, stopped: make(chan struct{})}
	begin := time.Now()
	tick := time.NewTicker(time.Millisecond)
	a.running.Go(func() {
		defer tick.Stop()
		for n := 0; ; {
			select {
			case <-a.stopped:
				return
			case <-tick.C:
			}
			for due := int(time.Since(begin).Seconds() * perSecond); n < due; n++ {
				if a.underWay.Load() >= atOnce {
					continue
				}
				a.sent.Add(1)
				a.underWay.Add(1)
				i := n
				a.running.Go(func() {
					a.guess(i)
					a.underWay.Add(-1)
				})
			}
		}
	})
	return a
}

func (a *attack) guess(i int) {
	ok, err := a.site.login(context.Background(), victim(i), bot(i), "a guess")
	var denied *guard.Denied
	switch {
	case errors.As(err, &denied):
		a.denied.Add(1)
	case errors.Is(err, guard.ErrUnavailable):
		a.unanswered.Add(1)
	case errors.Is(err, guard.ErrBusy):
		a.busy.Add(1)
	case err == nil && !ok:
		a.wrong.Add(1)
	default:
		err = fmt.Errorf("a guess: admitted is %v: %w", ok, err)
		a.failed.CompareAndSwap(nil, &err)
	}
}

// stop ends the flood, and reports what went wrong: of a guarded site any guess that
// got to the password. On a machine that is so busy that Redis gives no answer in time
// the guard counts by itself, which gives each victim's guesser five more, once.
func (a *attack) stop() error {
	close(a.stopped)
	a.running.Wait()
	if err := a.failed.Load(); err != nil {
		return *err
	}
	if a.site.guard == nil {
		return nil
	}
	budget := int64(0)
	if a.site.degraded.Load() > 0 {
		budget = 5 * victims
	}
	if wrong := a.wrong.Load(); wrong > budget || budget == 0 && a.busy.Load() > 0 {
		return fmt.Errorf("of %d guesses %d got to a password and %d to its gate, want at most %d", a.sent.Load(), wrong, a.busy.Load(), budget)
	}
	return nil
}
