package authdemo

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"authguard/guard"
)

// maxRefusalsKept bounds the memory of an observer.
const maxRefusalsKept = 4096

// observer logs what a guard decides. Of a subject that is refused over and
// over it logs the first time only, until it would be admitted again: an
// attack must not become a flood of log lines. The subject is a keyed hash,
// by which an operator can tell one abusive client from many.
type observer struct {
	log *slog.Logger
	now func() time.Time

	mu      sync.Mutex
	refused map[string]time.Time // rule and subject, until when it is known
}

func newObserver(log *slog.Logger, now func() time.Time) *observer {
	return &observer{log: log, now: now, refused: make(map[string]time.Time)}
}

// Observe implements guard.Observer.
func (o *observer) Observe(ctx context.Context, e guard.Event) {
	level := slog.LevelDebug
	attrs := []slog.Attr{slog.String("event", e.Kind.String()), slog.String("action", e.Action)}
	switch e.Kind {
	case guard.Refused, guard.Silenced, guard.Observed:
		if !o.first(e) {
			return
		}
		level = slog.LevelInfo
		attrs = append(attrs, slog.String("rule", e.Rule), slog.String("subject", e.Subject), slog.Duration("retry_after", e.RetryAfter))
	case guard.Unlocked, guard.Blocked, guard.Unblocked: // by operators, or an owner's reset
		level = slog.LevelInfo
		attrs = append(attrs, slog.String("rule", e.Rule), slog.String("by", string(e.By)), slog.String("subject", e.Subject), slog.Duration("for", e.RetryAfter))
	case guard.Unaddressed:
		level = slog.LevelWarn
	case guard.Unnoted, guard.Broken: // the latter once an interval, by guard.OutageLog
		attrs = append(attrs, slog.Any("err", e.Err))
	}
	o.log.LogAttrs(ctx, level, "guard", attrs...)
}

// first reports whether the refusal is news.
func (o *observer) first(e guard.Event) bool {
	key := e.Action + "/" + e.Rule + " " + e.Subject
	now := o.now()
	o.mu.Lock()
	defer o.mu.Unlock()
	if until, known := o.refused[key]; known && now.Before(until) {
		return false
	}
	if len(o.refused) >= maxRefusalsKept {
		clear(o.refused) // some are then logged twice
	}
	o.refused[key] = now.Add(e.RetryAfter)
	return true
}
