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

// denyFirst says that, for certain, a denies whatever b denies.
func denyFirst(a, b limiter.Limit) bool {
	n, window, ok := numbers(a)
	m, other, also := numbers(b)
	if !ok || !also || a.Law() != b.Law() {
		return false
	}
	// Windows of the clock lie within one another only if they divide evenly.
	even := window%other == 0 || other%window == 0
	switch a.(type) {
	case limiter.SlidingWindowCounter:
		return n <= m && window >= other && even
	case limiter.FixedWindow:
		if !even {
			return false
		}
	}
	// In b's window fit so many of a's, each of which admits n.
	fit := int64((other + window - 1) / window)
	return m >= n*fit
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
