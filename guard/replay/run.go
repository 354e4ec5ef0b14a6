package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"authguard/guard"
	"authguard/guard/recording"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// memory bounds the store of a replay, in bytes.
const memory = 1 << 30

// late is when a success gives nothing back any more; see guard.Pass.
const late = 10 * time.Second

// Run makes the attempts of log again under ps, those at actions that ps names. It
// reads log to its end, and holds what the policies remember and a few words for
// each different address and device. Its errors about a line begin with file and line.
func Run(ctx context.Context, log *recording.Reader, ps []guard.Policy) (*Report, error) {
	r := &run{actions: make(map[string]*Action), rules: make(map[string]*Rule), opened: make(map[string]bool), who: newStandIns()}
	if err := checkPrefixes(ps); err != nil {
		return nil, err
	}
	clock := func() time.Time { return r.now }
	store := memstore.New(memstore.Config{Now: clock, MaxBytes: memory})
	var err error
	r.guard, err = guard.New(guard.Config{
		Store:  struct{ limiter.Store }{store}, // nobody will ask it for a list of the refused
		Secret: []byte(strings.Repeat("replay ", 5)), Policies: ps,
		Opaque: true, Resolve: resolve, Observer: r, Now: clock,
	})
	if err != nil {
		return nil, err
	}
	report := &Report{Actions: make([]Action, len(ps))}
	for i, p := range ps {
		a := &report.Actions[i]
		a.Action, a.Rules = p.Action, make([]Rule, len(p.Rules))
		r.actions[p.Action] = a
		for j, rule := range p.Rules {
			a.Rules[j].Name, a.Rules[j].Effect = rule.Name, rule.Effect.String()
			name := p.Action + "/" + rule.Name
			r.rules[name], r.opened[name] = &a.Rules[j], rule.By == guard.ByAccount
		}
	}
	for n := 0; ; n++ {
		if n%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		a, err := log.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := r.again(ctx, a, report); err != nil {
			return nil, fmt.Errorf("%s: %w", a.Place, err)
		}
	}
	if n := store.Stats().Evicted; n > 0 {
		return nil, fmt.Errorf("replay: the policies remember more than fits into %d MiB: %d counts were dropped; replay a part of the recording", memory>>20, n)
	}
	report.Missing, report.Torn, report.Late, report.Strange, report.Homeless = log.Missing, log.Torn, log.Late, log.Strange, log.Homeless
	return report, nil
}

// run is one replay.
type run struct {
	guard   *guard.Guard
	now     time.Time
	who     *standIns
	actions map[string]*Action
	rules   map[string]*Rule // by action/rule
	opened  map[string]bool  // by action/rule: those that unlocking an account clears
	denying []string         // the rules that denied the attempt at hand
}

// Observe implements guard.Observer.
func (r *run) Observe(_ context.Context, e guard.Event) {
	switch e.Kind {
	case guard.Refused, guard.Silenced, guard.Observed:
		r.denying = append(r.denying, e.Action+"/"+e.Rule)
	}
}

// again makes what happened happen again.
func (r *run) again(ctx context.Context, a *recording.Attempt, report *Report) error {
	r.now = a.At
	if a.Is == guard.RecordUnlocked {
		return r.unlock(ctx, a)
	}
	if report.From.IsZero() {
		report.From = a.At
	}
	report.To = a.At
	action := r.actions[a.Action]
	if action == nil {
		if report.NotTried == nil {
			report.NotTried = make(map[string]int)
		}
		report.NotTried[a.Action]++
		return nil
	}
	how := action.begin(a)
	for _, name := range a.Rules {
		if rule := r.rules[a.Action+"/"+name]; rule != nil {
			rule.Then++
		}
	}
	refused, err := r.attempt(ctx, a)
	switch {
	case errors.Is(err, guard.ErrNoAccount), errors.Is(err, limiter.ErrCostTooHigh):
		action.Impossible++
		return nil
	case err != nil:
		return err
	}
	for _, name := range r.denying {
		r.rules[name].add(a.At, how, a.Account, a.IP)
	}
	if refused {
		action.Refused.add(a.At, how, a.Account, a.IP)
	}
	action.compare(refusedThen(a), refused)
	return nil
}

// attempt asks the guard, and settles as the recording says.
func (r *run) attempt(ctx context.Context, a *recording.Attempt) (refused bool, err error) {
	r.denying = r.denying[:0]
	cookie, err := r.who.cookie(r.guard, &a.Record)
	if err != nil {
		return false, err
	}
	pass, err := r.guard.Check(ctx, guard.Attempt{
		Action: a.Action, Account: a.Account, IP: r.who.address(&a.Record), Device: cookie,
		APIKey: a.APIKey, Tenant: a.Tenant, Parts: a.Parts, Cost: a.Cost,
	})
	if errors.As(err, new(*guard.Denied)) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	switch a.Ended {
	case guard.RecordSucceeded:
		if a.EndedAt.Sub(a.At) <= late {
			return false, pass.Succeed(ctx)
		}
	case guard.RecordCancelled:
		return false, pass.Cancel(ctx)
	case guard.RecordShed:
		return false, pass.Shed(ctx)
	}
	return false, pass.Fail(ctx)
}

// unlock clears what was cleared then, as far as the tried policies have it.
func (r *run) unlock(ctx context.Context, a *recording.Attempt) error {
	names := []string{a.Action}
	if len(a.Rules) > 0 {
		names = names[:0]
		for _, rule := range a.Rules {
			names = append(names, a.Action+"/"+rule)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool {
		action, _, one := strings.Cut(name, "/")
		return r.actions[action] == nil || one && !r.opened[name]
	})
	if len(names) == 0 || a.Account == "" {
		return nil
	}
	return r.guard.Unlock(ctx, a.Account, names...)
}

func refusedThen(a *recording.Attempt) bool {
	return a.Is == guard.RecordRefused || a.Is == guard.RecordUnavailable
}

// begin counts an attempt as the recording has it.
func (a *Action) begin(at *recording.Attempt) outcome {
	a.Attempts++
	switch at.Ended {
	case guard.RecordSucceeded:
		a.Succeeded++
		return succeeded
	case guard.RecordFailed:
		a.Failed++
		return failed
	}
	a.Unknown++
	return unknown
}

func (a *Action) compare(then, now bool) {
	if then {
		a.RefusedThen++
	}
	switch {
	case then && now:
		a.Both++
	case now:
		a.OnlyNow++
	case then:
		a.OnlyThen++
	}
}
