//go:build unix

package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"time"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/breaker"
	"authguard/limiter/redisstore"
)

// What the processes agree on.
const (
	processes = 4
	deadline  = 500 * time.Millisecond // of a call of the store
	patience  = 2 * time.Second        // and where nothing may go unanswered, however busy the machine

	perAccount = 10 // of an hour
	perIP      = 50

	callers    = 16                     // goroutines of a process
	pace       = 25 * time.Millisecond  // between two attempts of a caller, on average
	freshEvery = 500 * time.Millisecond // new accounts come up, so that there is always something left to lose
	accounts   = 10                     // that come up together
	ledgers    = 8
)

// The actions, named after what their rules do while the store is down. The
// ledger's limit is so high that it refuses nothing and only counts.
const (
	deny   = "deny"
	local  = "local"
	ledger = "ledger"
)

func chaosPolicies() []guard.Policy {
	login := func(action string, o guard.Outage) guard.Policy {
		return guard.Policy{Action: action, Rules: []guard.Rule{
			{Name: "account", By: guard.ByAccount, Counts: guard.Failures, OnOutage: o,
				Limits: []limiter.Limit{limiter.SlidingWindow{Limit: perAccount, Window: time.Hour}}},
			{Name: "ip", By: guard.ByIP, Counts: guard.Failures, OnOutage: o,
				Limits: []limiter.Limit{limiter.SlidingWindow{Limit: perIP, Window: time.Hour}}},
		}}
	}
	// The bucket gains its first token after minutes, so it counts exactly.
	count := limiter.TokenBucket{Capacity: 10_000, Refill: 10_000, Per: limiter.MaxWindow}
	return []guard.Policy{
		login(deny, guard.OutageDeny), login(local, guard.OutageLocal),
		{Action: ledger, Rules: []guard.Rule{{Name: "count", By: guard.ByAccount, Limits: []limiter.Limit{count}}}},
	}
}

// newGuard composes what an application does: a guard over a breaker over the
// store that all processes share.
func newGuard(url string, timeout time.Duration) (*guard.Guard, error) {
	client, err := redisstore.NewClient(url)
	if err != nil {
		return nil, err
	}
	shared, err := redisstore.New(redisstore.Config{Client: client, Timeout: timeout})
	if err != nil {
		return nil, err
	}
	store, err := breaker.New(breaker.Config{Store: shared})
	if err != nil {
		return nil, err
	}
	return guard.New(guard.Config{
		Store: timed{store}, Secret: []byte("the same in all the processes of it"), Policies: chaosPolicies(),
		Instances: processes, Observer: observer{},
	})
}

// account is one of those that come up together. Three of them have one address,
// which has more than they can use, and seven another, which has less.
type account struct{ Generation, Number int }

func (a account) String() string { return fmt.Sprintf("g%d-%d", a.Generation, a.Number) }

func (a account) ip() netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(a.Generation), 0, byte(min(a.Number/3, 1))})
}

// UnmarshalText reads what String writes, for the keys of a map in JSON.
func (a *account) UnmarshalText(b []byte) error {
	_, err := fmt.Sscanf(string(b), "g%d-%d", &a.Generation, &a.Number)
	return err
}

// MarshalText writes String.
func (a account) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// task is what a worker is told.
type task struct {
	URL        string
	Timeout    time.Duration // of the store
	Start, End time.Time
	Succeed    float64 // share of the attempts with the right password
}

// worker is one process of the application under load.
type worker struct {
	task   task
	guard  *guard.Guard
	stalls stalls

	mu     sync.Mutex
	report report
}

// work does what a process of the application would, and tells of it in lines of
// JSON.
func work(t task, out io.Writer) error {
	runtime.GOMAXPROCS(1) // so that a stall of one is a stall of all, which the control sees
	g, err := newGuard(t.URL, t.Timeout)
	if err != nil {
		return err
	}
	w := &worker{task: t, guard: g}
	go w.stalls.watch()
	lines := json.NewEncoder(out)
	time.Sleep(time.Until(t.Start))
	var under sync.WaitGroup
	for range callers {
		under.Go(w.hammer)
	}
	ended := make(chan struct{})
	go func() { under.Wait(); close(ended) }()
	for tick := time.NewTicker(500 * time.Millisecond); ; {
		select {
		case <-tick.C:
			if err := lines.Encode(w.take()); err != nil {
				return err // nobody listens any more
			}
			continue
		case <-ended:
		}
		last := w.take()
		last.Healed = w.healed()
		return lines.Encode(last)
	}
}

// take is the report since the last one.
func (w *worker) take() report {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.report
	w.report = report{}
	return r
}

// hammer is one caller.
func (w *worker) hammer() {
	for time.Now().Before(w.task.End) {
		time.Sleep(rand.N(2 * pace))
		action := []string{deny, deny, local, local, ledger}[rand.N(5)]
		if action == ledger {
			w.attempt(action, account{0, rand.N(ledgers)})
			continue
		}
		newest := int(time.Since(w.task.Start) / freshEvery)
		generation := newest
		if rand.N(2) == 0 {
			generation = rand.N(newest + 1)
		}
		w.attempt(action, account{generation, rand.N(accounts)})
	}
}

// fate is what a guard's observer is told of one attempt.
type fate struct {
	fault    error // of the store
	degraded bool  // the rules' OnOutage decided

	began, ended time.Time // of the longest call of the store
}

type fateKey struct{}

// timed notes how long a guard is kept waiting for its store. What it waits for of
// its own accord, others who may give back what an attempt lacks, is no part of that.
type timed struct{ limiter.Store }

func (s timed) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	defer note(ctx, time.Now())
	return s.Store.Take(ctx, charges)
}

func (s timed) Refund(ctx context.Context, charges []limiter.Charge) error {
	defer note(ctx, time.Now())
	return s.Store.Refund(ctx, charges)
}

func note(ctx context.Context, began time.Time) {
	if f, ok := ctx.Value(fateKey{}).(*fate); ok {
		if now := time.Now(); now.Sub(began) >= f.ended.Sub(f.began) {
			f.began, f.ended = began, now
		}
	}
}

type observer struct{}

func (observer) Observe(ctx context.Context, e guard.Event) {
	f, ok := ctx.Value(fateKey{}).(*fate)
	if !ok {
		return
	}
	switch e.Kind {
	case guard.Broken:
		f.fault = e.Err
	case guard.Degraded:
		f.degraded = true
	}
}

// unknown reports that the store may have done what was asked, and did not say.
func (f *fate) unknown() bool { return f.fault != nil && !errors.Is(f.fault, breaker.ErrOpen) }

// attempt makes one attempt and writes down what came of it.
func (w *worker) attempt(action string, a account) {
	f := new(fate)
	ctx := context.WithValue(context.Background(), fateKey{}, f)
	pass, err := w.guard.Check(ctx, guard.Attempt{Action: action, Account: a.String(), IP: a.ip()})
	w.answered(f, func(r *report, t *tally) {
		r.Attempts++
		if f.unknown() {
			t.Unknown++
		}
		switch {
		case err == nil && f.degraded:
			t.Alone++
		case err == nil:
			t.Shared++
		case errors.As(err, new(*guard.Denied)):
			if !f.degraded {
				t.Refused++
			}
		case errors.Is(err, guard.ErrUnavailable):
			r.Unavailable++
		default:
			r.Wrong = append(r.Wrong, err.Error())
		}
	}, action, a)
	if pass == nil {
		return
	}
	if action == ledger || rand.Float64() >= w.task.Succeed {
		if err := pass.Fail(ctx); err != nil { // it asks no store
			panic(err)
		}
		return
	}
	f.began, f.ended = time.Time{}, time.Time{}
	err = pass.Succeed(ctx)
	w.answered(f, func(r *report, t *tally) {
		t.Succeeded++
		if f.degraded {
			t.Alone--
		} else {
			t.Shared--
		}
		if err != nil {
			r.Unrefunded++
		}
	}, action, a)
}

// answered writes down an attempt's answer, and how long the store took for it.
func (w *worker) answered(f *fate, what func(*report, *tally), action string, a account) {
	var took, stalled time.Duration
	if !f.began.IsZero() { // what is counted in this process asks no store
		took, stalled = f.ended.Sub(f.began), w.stalls.since(f.began, f.ended)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r := &w.report
	r.Slowest = max(r.Slowest, took)
	switch lateAfter := w.task.Timeout + w.task.Timeout/5; {
	case took-stalled > lateAfter:
		r.Late++
	case took > lateAfter:
		r.Stalled++
	}
	what(r, r.tally(action, a))
}

// healed reports whether the store answers this process again, without a restart.
func (w *worker) healed() bool {
	inARow := 0
	for until := time.Now().Add(5 * time.Second); inARow < 5 && time.Now().Before(until); time.Sleep(20 * time.Millisecond) {
		_, err := w.guard.Inspect(context.Background(), guard.Attempt{Action: ledger, Account: account{}.String()})
		inARow++
		if err != nil {
			inARow = 0
		}
	}
	return inARow == 5
}
