package guard_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// waitingGuard reads the clock of the bubble that it is made in.
func waitingGuard(t *testing.T, store limiter.Store, instances int, rules ...guard.Rule) *guard.Guard {
	if store == nil {
		store = memstore.New(memstore.Config{})
	}
	g, err := guard.New(guard.Config{Store: store, Secret: secret, Instances: instances, Policies: []guard.Policy{login(rules...)}})
	require.NoError(t, err)
	return g
}

// atOnce makes n attempts at one instant, whose secret takes a while to compare.
func atOnce(n int, g func(i int) *guard.Guard, right bool) (admitted, refused int64) {
	var yes, no atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			pass, err := g(i).Check(ctx, by("bob", here))
			if err != nil {
				no.Add(1)
				return
			}
			yes.Add(1)
			time.Sleep(50 * time.Millisecond)
			if right {
				pass.Succeed(ctx)
			} else {
				pass.Fail(ctx)
			}
		})
	}
	wg.Wait()
	return yes.Load(), no.Load()
}

// RC-03, RC-04: charges that may be given back make an attempt wait, not lose.
func TestThirtyRightPasswordsAtOnceAllGetIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := waitingGuard(t, nil, 0, accountRule(), ipRule(100))
		begin := time.Now()
		admitted, refused := atOnce(30, func(int) *guard.Guard { return g }, true)
		require.EqualValues(t, 30, admitted)
		require.Zero(t, refused)
		require.Equal(t, 300*time.Millisecond, time.Since(begin), "five at a time, and nobody waits longer than that takes")
	})
}

func TestTwoHundredWrongPasswordsAtOnceAreFiveGuesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := waitingGuard(t, nil, 0, accountRule(), ipRule(1000))
		begin := time.Now()
		admitted, refused := atOnce(200, func(int) *guard.Guard { return g }, false)
		require.EqualValues(t, 5, admitted)
		require.EqualValues(t, 195, refused)
		require.Equal(t, 50*time.Millisecond, time.Since(begin), "when all have failed nobody waits any longer")
		admitted, _ = atOnce(200, func(int) *guard.Guard { return g }, true)
		require.Zero(t, admitted)
	})
}

// Between two processes an attempt asks once more, a little later.
func TestChargesOfAnotherProcessAreWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New(memstore.Config{})
		a, b := waitingGuard(t, store, 2, accountRule()), waitingGuard(t, store, 2, accountRule())
		var held []*guard.Pass
		for range 5 {
			pass, err := a.Check(ctx, by("bob", here))
			require.NoError(t, err)
			held = append(held, pass)
		}
		time.AfterFunc(100*time.Millisecond, func() { held[0].Succeed(ctx) })
		begin := time.Now()
		pass, err := b.Check(ctx, by("bob", here))
		require.NoError(t, err)
		require.Equal(t, 250*time.Millisecond, time.Since(begin))
		require.NoError(t, pass.Fail(ctx))

		begin = time.Now()
		for range 100 {
			_, err := b.Check(ctx, by("bob", here))
			require.ErrorAs(t, err, new(*guard.Denied))
		}
		require.Less(t, time.Since(begin), 2*time.Second, "only while the refusals are new")
		time.Sleep(time.Minute)
		begin = time.Now()
		_, err = b.Check(ctx, by("bob", here))
		require.ErrorAs(t, err, new(*guard.Denied))
		require.Zero(t, time.Since(begin), "the same denial as before")
	})
}

func TestWaitingIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := waitingGuard(t, nil, 0, accountRule())
		for range 5 {
			_, err := g.Check(ctx, by("bob", here)) // never settled
			require.NoError(t, err)
		}
		begin := time.Now()
		waited := make([]time.Duration, 60)
		var wg sync.WaitGroup
		for i := range waited {
			wg.Go(func() {
				_, err := g.Check(ctx, by("bob", here))
				require.ErrorAs(t, err, new(*guard.Denied))
				waited[i] = time.Since(begin)
			})
		}
		wg.Wait()
		patient := 0
		for _, w := range waited {
			if w > 0 {
				require.Equal(t, 2*time.Second, w)
				patient++
			}
		}
		require.Equal(t, 32, patient)

		hurried, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		begin = time.Now()
		_, err := g.Check(hurried, by("bob", here))
		require.Error(t, err)
		require.Equal(t, time.Second, time.Since(begin))

		time.Sleep(20 * time.Second) // what nobody settles can give nothing back any more
		begin = time.Now()
		_, err = g.Check(ctx, by("bob", here))
		require.ErrorAs(t, err, new(*guard.Denied))
		require.Zero(t, time.Since(begin))
	})
}

// In all no more than 1,024 attempts wait, however many accounts are tried.
func TestWaitingIsBoundedOverAllAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := accountRule()
		one.Limits = window(1, time.Hour)
		g := waitingGuard(t, nil, 0, one)
		var patient atomic.Int64
		var wg sync.WaitGroup
		for i := range 60 {
			name := fmt.Sprint("user", i)
			_, err := g.Check(ctx, by(name, here))
			require.NoError(t, err)
			for range 20 {
				wg.Go(func() {
					begin := time.Now()
					g.Check(ctx, by(name, here))
					if time.Since(begin) > 0 {
						patient.Add(1)
					}
				})
			}
		}
		wg.Wait()
		require.EqualValues(t, 1024, patient.Load())
	})
}

// Where no success can help there is nothing to wait for.
func TestWhatNoSuccessCanLiftIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := accountRule()
		attempts.Counts = guard.Attempts
		for name, rules := range map[string][]guard.Rule{"attempts": {attempts}, "both": {accountRule(), withCounts(ipRule(5), guard.Attempts)}} {
			g := waitingGuard(t, nil, 0, rules...)
			for range 5 {
				_, err := g.Check(ctx, by("bob", here))
				require.NoError(t, err)
			}
			begin := time.Now()
			_, err := g.Check(ctx, by("bob", here))
			require.ErrorAs(t, err, new(*guard.Denied), name)
			require.Zero(t, time.Since(begin), name)
		}
	})
}

func withCounts(r guard.Rule, c guard.Counts) guard.Rule {
	r.Counts = c
	return r
}

// afterDenial does something when the store has denied and nobody knows it yet.
type afterDenial struct {
	limiter.Store
	then func()
}

func (s *afterDenial) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	ok, err := s.Store.Take(ctx, charges)
	if then := s.then; !ok && then != nil {
		s.then = nil
		then()
	}
	return ok, err
}

// RC-03: what is given back while an attempt is on its way to wait is found before
// it is refused.
func TestWhatIsGivenBackBeforeOneWaitsIsNotLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &afterDenial{Store: memstore.New(memstore.Config{})}
		g := waitingGuard(t, store, 0, accountRule())
		var held []*guard.Pass
		for range 5 {
			pass, err := g.Check(ctx, by("bob", here))
			require.NoError(t, err)
			held = append(held, pass)
		}
		store.then = func() { held[0].Succeed(ctx) }
		_, err := g.Check(ctx, by("bob", here))
		require.NoError(t, err)
	})
}
