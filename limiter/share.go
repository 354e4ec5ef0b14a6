package limiter

import "time"

// Sharer is a Limit that can be divided among processes which cannot ask one
// another: each gets its share, rounded down and at least 1.
type Sharer interface {
	// Share is what one of n processes may admit by itself. All of them
	// together admit no more than the whole, or n where the whole is less.
	Share(n int64) Limit
}

func share(limit, n int64) int64 { return max(1, limit/max(1, n)) }

// shareRate divides a rate: by fewer units where that goes even, otherwise by a
// longer time, as far as times go.
func shareRate(units int64, per time.Duration, n int64) (int64, time.Duration) {
	n = max(1, n)
	if units%n == 0 {
		return units / n, per
	}
	if per <= MaxWindow/time.Duration(n) {
		return units, per * time.Duration(n)
	}
	return share(units, n), per
}

// Share implements [Sharer].
func (l TokenBucket) Share(n int64) Limit {
	refill, per := shareRate(l.Refill, l.Per, n)
	return TokenBucket{share(l.Capacity, n), refill, per}
}

// Share implements [Sharer].
func (l LeakyBucket) Share(n int64) Limit {
	leak, per := shareRate(l.Leak, l.Per, n)
	return LeakyBucket{share(l.Capacity, n), leak, per}
}

// Share implements [Sharer].
func (l FixedWindow) Share(n int64) Limit { return FixedWindow{share(l.Limit, n), l.Window} }

// Share implements [Sharer].
func (l SlidingWindow) Share(n int64) Limit { return SlidingWindow{share(l.Limit, n), l.Window} }

// Share implements [Sharer].
func (l SlidingWindowCounter) Share(n int64) Limit {
	return SlidingWindowCounter{share(l.Limit, n), l.Window}
}

// Share implements [Sharer]. The waits stay; what is free and what locks is divided.
func (l Backoff) Share(n int64) Limit {
	l.Free = share(l.Free, n)
	if l.LockAfter > 0 {
		l.LockAfter = max(l.Free+1, share(l.LockAfter, n))
	}
	return l
}

// Share implements [Sharer].
func (l Distinct) Share(n int64) Limit { return Distinct{share(l.Limit, n), l.Window} }
