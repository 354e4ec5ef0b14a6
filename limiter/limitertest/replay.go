package limitertest

import (
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// Traces replays the histories in testdata on stores made by open, which read
// the clock that they are given. Each history has a store to itself.
func Traces(t *testing.T, open func(t *testing.T, now func() time.Time) limiter.Store) {
	traces, err := readTraces()
	require.NoError(t, err)
	require.NotEmpty(t, traces)
	for _, tr := range traces {
		t.Run(strings.TrimSuffix(path.Base(tr.name), ".trace"), func(t *testing.T) {
			tr.replay(newRig(t, open))
		})
	}
}

// LawTraces replays the histories on the laws alone, with nothing but a map to
// keep their states.
func LawTraces(t *testing.T) {
	Traces(t, func(_ *testing.T, now func() time.Time) limiter.Store { return newReference(now) })
}

func (tr *trace) replay(r *rig) {
	const key = "trace"
	receipts := map[string][]limiter.Charge{}
	for _, s := range tr.steps {
		r.clock.set(s.at)
		charges := []limiter.Charge{{Key: key, Limit: tr.limit, Ask: limiter.Ask{Cost: s.cost}}}
		var err error
		switch s.verb {
		case "take":
			var ok bool
			ok, err = r.store.Take(r.t.Context(), charges)
			require.Equalf(r.t, s.want.allowed, ok, "%s: at %v: %+v", s.line, s.at, charges[0].Decision)
			require.Equalf(r.t, ok, charges[0].Taken, "%s: Taken", s.line)
			if s.label != "" {
				receipts[s.label] = charges
			}
		case "peek":
			err = r.store.Peek(r.t.Context(), charges)
		case "refund":
			err = r.store.Refund(r.t.Context(), receipts[s.label])
		case "forget":
			err = r.store.Forget(r.t.Context(), []string{key})
		}
		if s.want.tooHigh {
			require.ErrorIs(r.t, err, limiter.ErrCostTooHigh, s.line)
			continue
		}
		require.NoError(r.t, err, s.line)
		if s.verb == "take" || s.verb == "peek" {
			s.compare(r.t, charges[0].Decision)
		}
	}
}

// compare checks what the line says of the decision.
func (s *step) compare(t *testing.T, d limiter.Decision) {
	t.Helper()
	want := d
	want.Allowed = s.want.allowed
	want.At = start.Add(s.at).UnixMicro()
	if s.want.allowed {
		want.RetryAfter = 0
	}
	if s.want.remaining != nil {
		want.Remaining = *s.want.remaining
	}
	if s.want.retry != nil {
		want.RetryAfter = *s.want.retry
	}
	if s.want.until != nil {
		want.RetryAfter = *s.want.until - s.at
	}
	if s.want.reset != nil {
		want.ResetAfter = *s.want.reset
	}
	require.Equalf(t, want, d, "%s: at %v", s.line, s.at)
}
