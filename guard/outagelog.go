package guard

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// OutageLog is an [Observer] that logs what is decided without the store: the
// first fault at once, then one line an interval with how many there were, and one
// when the store has answered for an interval. Make it with [NewOutageLog].
type OutageLog struct {
	log   *slog.Logger
	every time.Duration
	now   func() time.Time

	lasting atomic.Bool

	mu       sync.Mutex
	told     time.Time // when the last line was written
	fault    time.Time // when the last fault was
	faults   int       // since the last line
	degraded int       // attempts since then that rules have decided without the store
	err      error     // the last fault
}

// NewOutageLog makes an OutageLog that writes one line in every, 0 meaning a
// minute, by the clock now, nil meaning time.Now.
func NewOutageLog(log *slog.Logger, every time.Duration, now func() time.Time) *OutageLog {
	if every <= 0 {
		every = time.Minute
	}
	if now == nil {
		now = time.Now
	}
	return &OutageLog{log: log, every: every, now: now}
}

// Observe implements [Observer].
func (o *OutageLog) Observe(ctx context.Context, e Event) {
	switch e.Kind {
	case Broken, Degraded, Admitted, Refused:
	default:
		return
	}
	if !o.lasting.Load() && e.Kind != Broken {
		return // as nearly always
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	switch e.Kind {
	case Broken:
		o.faults++
		o.fault, o.err = now, e.Err
		if !o.lasting.Swap(true) {
			o.told = now
			o.log.LogAttrs(ctx, slog.LevelError, "guard: limits cannot be checked; each rule decides by its on_outage",
				slog.String("action", e.Action), slog.String("rule", e.Rule), slog.Any("err", e.Err))
			o.faults, o.degraded = 0, 0
			return
		}
	case Degraded:
		o.degraded++
	}
	switch {
	case now.Sub(o.fault) >= o.every:
		o.lasting.Store(false)
		o.log.LogAttrs(ctx, slog.LevelInfo, "guard: limits are checked again",
			slog.Int("faults", o.faults), slog.Int("degraded", o.degraded))
		o.faults, o.degraded = 0, 0
	case now.Sub(o.told) >= o.every:
		o.told = now
		o.log.LogAttrs(ctx, slog.LevelError, "guard: limits still cannot be checked",
			slog.Int("faults", o.faults), slog.Int("degraded", o.degraded), slog.Any("err", o.err))
		o.faults, o.degraded = 0, 0
	}
}
