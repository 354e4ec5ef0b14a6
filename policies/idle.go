package policies

import (
	"time"

	"authguard/limiter"
)

// idle notes limits that never deny, because another one of the same rule
// always denies first: usually numbers that stand in the wrong order.
func (rr *ruleReader) idle() {
	for i, p := range rr.placed {
		for j, other := range rr.rule.Limits {
			if i != j && denyFirst(other, rr.rule.Limits[i]) && (j < i || !denyFirst(rr.rule.Limits[i], other)) {
				rr.at(p.node, "%s: %s %s cannot deny: %v always denies first", rr.where, p.field, describe(p.node), other)
				break
			}
		}
	}
}

// denyFirst says that, for certain, a denies whatever b denies: it holds no more, for
// no less time.
func denyFirst(a, b limiter.Limit) bool {
	n, window, ok := numbers(a)
	m, shorter, also := numbers(b)
	if !ok || !also || a.Law() != b.Law() || n > m || window < shorter {
		return false
	}
	switch a.(type) {
	case limiter.FixedWindow, limiter.SlidingWindowCounter:
		// Windows of the clock lie within one another only if they divide evenly.
		return window%shorter == 0
	}
	return true
}

// numbers are those of a window law.
func numbers(l limiter.Limit) (n int64, window time.Duration, ok bool) {
	switch l := l.(type) {
	case limiter.SlidingWindow:
		return l.Limit, l.Window, true
	case limiter.SlidingWindowCounter:
		return l.Limit, l.Window, true
	case limiter.FixedWindow:
		return l.Limit, l.Window, true
	case limiter.Distinct:
		return l.Limit, l.Window, true
	}
	return 0, 0, false
}
