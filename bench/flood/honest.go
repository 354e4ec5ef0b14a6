package flood

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"authguard/guard"
)

const (
	honest   = 4                      // people who log in at any time
	comeBack = 100 * time.Millisecond // when they try again if there was no room
)

// logins has honest people log in, one after the other, until the time is over. It
// returns how long each login took, from the first try to the welcome, and all of it.
func logins(s *site, d time.Duration) (each []time.Duration, elapsed time.Duration, err error) {
	took := make([][]time.Duration, honest)
	errs := make([]error, honest)
	start := time.Now()
	until := start.Add(d)
	var wg sync.WaitGroup
	for i := range honest {
		wg.Go(func() {
			for n := 0; time.Now().Before(until); n++ {
				begin := time.Now()
				in, err := welcome(s, i, n, until)
				if err != nil {
					errs[i] = err
					return
				}
				if in {
					took[i] = append(took[i], time.Since(begin))
				}
			}
		})
	}
	wg.Wait()
	for _, mine := range took {
		each = append(each, mine...)
	}
	return each, time.Since(start), errors.Join(errs...)
}

// welcome logs one person in, who comes back when there is no room or no answer,
// and goes when the time is over.
func welcome(s *site, i, n int, until time.Time) (in bool, err error) {
	who := n % 250
	account := fmt.Sprintf("honest%d-%d@example.com", i, who)
	addr := netip.AddrFrom4([4]byte{192, 0, byte(i), byte(who)})
	for {
		ok, err := s.login(context.Background(), account, addr, secret)
		switch {
		case err == nil && !ok:
			return false, errors.New("an honest login failed")
		case err == nil:
			return true, nil
		case !errors.Is(err, guard.ErrBusy) && !errors.Is(err, guard.ErrUnavailable):
			return false, fmt.Errorf("an honest login: %w", err)
		case !time.Now().Before(until):
			return false, nil
		}
		time.Sleep(comeBack)
	}
}
