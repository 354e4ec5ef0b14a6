package guard

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"authguard/limiter"
)

// unsettled counts, by subject, the passes of this process that are not settled
// yet: their charges may be given back. Subjects are told apart by 14 bits of their
// hash, so that counting costs one atomic operation; two that fall together only
// make somebody wait in vain, for maxWait at most.
type unsettled struct {
	slots   [unsettledSlots]subjects
	refused []atomic.Uint64 // see fresh; nil in a process that is alone
	all     atomic.Int64    // who wait

	mu      sync.Mutex
	waiting map[slot][]chan struct{} // first come first
}

// subjects are those that fall in one slot.
type subjects struct {
	passes   atomic.Uint64 // not settled, see passCount
	gaveBack atomic.Uint32 // passes that gave something back, so far
	asked    atomic.Uint32 // attempts about which the store was asked, so far
	answered atomic.Uint32 // those of them that it has answered
}

// slot stands for the subjects that are counted together.
type slot uint16

const (
	unsettledSlots = 1 << 14

	// waitedSubjects bounds the subjects of one attempt that are counted.
	waitedSubjects = 4

	// Bounds of waiting for others to settle.
	maxWait       = 2 * time.Second
	maxWaitingKey = 32
	maxWaitingAll = 1024
)

// slotOf is the slot of a key's subject, whose text is random already.
func slotOf(key string) slot { return hashSlot(key[len(keyPrefix) : len(keyPrefix)+6]) }

func hashSlot(s string) slot {
	h := uint32(2166136261) // FNV-1a
	for _, c := range []byte(s) {
		h = (h ^ uint32(c)) * 16777619
	}
	return slot(h % unsettledSlots)
}

// passCount is how many passes were given in some span of ten seconds and the one
// before: a pass that nobody settles stops counting after two spans, since it can
// give nothing back then.
type passCount struct {
	span     uint32 // settleWithin since 1970
	now, old uint16
}

func spanOf(t time.Time) uint32 { return uint32(t.Unix() / int64(settleWithin/time.Second)) }

func unpackCount(w uint64, span uint32) passCount {
	c := passCount{uint32(w >> 32), uint16(w), uint16(w >> 16)}
	switch {
	case span == c.span+1:
		return passCount{span, 0, c.now}
	case span > c.span:
		return passCount{span, 0, 0}
	}
	return c // also if the clock stepped back
}

func (c passCount) pack() uint64 { return uint64(c.span)<<32 | uint64(c.old)<<16 | uint64(c.now) }
func (c passCount) any() bool    { return c.now > 0 || c.old > 0 }

// change counts n more passes of a span, 1 or -1, and reports whether any is left.
func (u *unsettled) change(s slot, span uint32, n int) bool {
	for {
		w := u.slots[s].passes.Load()
		c := unpackCount(w, span)
		switch {
		case n > 0 && c.now < 1<<16-1:
			c.now++
		case n < 0 && c.span == span && c.now > 0:
			c.now--
		case n < 0 && c.span == span+1 && c.old > 0:
			c.old--
		}
		if u.slots[s].passes.CompareAndSwap(w, c.pack()) {
			return c.any()
		}
	}
}

func (u *unsettled) any(s slot, now time.Time) bool {
	return unpackCount(u.slots[s].passes.Load(), spanOf(now)).any()
}

// settle takes a pass of a span out. What it gave back is for one who waits; when
// none is left that could give anything back, nobody need wait any longer.
func (u *unsettled) settle(s slot, span uint32, gaveBack bool) {
	if gaveBack {
		u.slots[s].gaveBack.Add(1)
	}
	left := u.change(s, span, -1)
	if u.all.Load() == 0 || left && !gaveBack {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.wake(s, !left)
}

// wake lets one go, or all. u.mu is held.
func (u *unsettled) wake(s slot, all bool) {
	queue := u.waiting[s]
	n := min(1, len(queue))
	if all {
		n = len(queue)
	}
	for _, c := range queue[:n] {
		close(c)
	}
	if n == len(queue) {
		delete(u.waiting, s)
	} else {
		u.waiting[s] = queue[n:]
	}
}

// wait returns when one may be let go, true, or need not wait any longer: false.
// more tells what happened before it stood in the queue, and so was told to nobody.
func (u *unsettled) wait(ctx context.Context, s slot, more func() bool, now func() time.Time, d time.Duration) bool {
	c := u.queue(s)
	if c == nil {
		return false
	}
	timeout := time.NewTimer(d)
	defer timeout.Stop()
	if more() || !u.any(s, now()) {
		u.leave(s, c, false)
		return true
	}
	select {
	case <-c:
		u.leave(s, c, false)
		return true
	case <-timeout.C:
	case <-ctx.Done():
	}
	u.leave(s, c, true)
	return false
}

// queue takes a place among those who wait for s; nil if there is none left.
func (u *unsettled) queue(s slot) chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.waiting[s]) >= maxWaitingKey || u.all.Load() >= maxWaitingAll {
		return nil
	}
	if u.waiting == nil {
		u.waiting = map[slot][]chan struct{}{}
	}
	c := make(chan struct{})
	u.waiting[s] = append(u.waiting[s], c)
	u.all.Add(1)
	return c
}

// leave gives the place up. One who was just told to go and does not, sends the
// next.
func (u *unsettled) leave(s slot, c chan struct{}, gone bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.all.Add(-1)
	for i, w := range u.waiting[s] {
		if w == c {
			u.waiting[s] = append(u.waiting[s][:i:i], u.waiting[s][i+1:]...)
			if len(u.waiting[s]) == 0 {
				delete(u.waiting, s)
			}
			return
		}
	}
	if gone {
		u.wake(s, false)
	}
}

// fresh reports that a refusal is less than a second old: while a key denies,
// nothing is charged to it, and its denial ends at the same instant.
func (u *unsettled) fresh(refusal *limiter.Charge, now time.Time) bool {
	if u.refused == nil {
		return false
	}
	const tenth = 100_000 // of a second, in microseconds
	d := &refusal.Decision
	end, t := uint32((d.At+d.RetryAfter.Microseconds())/tenth), uint32(now.UnixMicro()/tenth)
	word := &u.refused[hashSlot(refusal.Key)]
	if w := word.Load(); uint32(w>>32) == end {
		return t-uint32(w) < 10
	}
	word.Store(uint64(end)<<32 | uint64(t))
	return true
}
