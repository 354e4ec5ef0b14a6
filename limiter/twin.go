package limiter

import _ "embed"

// Scripted is a Limit that can also be decided inside Redis: by its twin, the
// same arithmetic in Lua, which gives the same answers and the same bytes.
//
// The source of a twin ends in `return take, refund`, two functions:
//
//	take(s, now, cost, member, n…) → wait, remaining, reset, new, delay, locked
//	refund(s, now, at, cost, member, n…) → new
//
// where s is the stored state (” for none) and n… are the numbers of the limit.
// They are Limit.Take and Limit.Refund: a wait of 0 is a yes; new is nil where
// the state stands as it is, and ” where the key may be forgotten; delay and
// locked may be left out. A first value of nil says that s is no state of this
// law. All numbers are integers that a double holds exactly, times are in
// microseconds. A twin must not call Redis.
type Scripted interface {
	Limit

	// Twin is the source, the same for all limits of the law, and the numbers.
	Twin() (source string, numbers []int64)
}

//go:embed bucket.lua
var bucketTwin string

//go:embed fixedwindow.lua
var fixedWindowTwin string

//go:embed slidingwindow.lua
var slidingWindowTwin string

//go:embed slidingwindowcounter.lua
var slidingWindowCounterTwin string

//go:embed backoff.lua
var backoffTwin string

//go:embed distinct.lua
var distinctTwin string

//go:embed block.lua
var blockTwin string

// Twin implements [Scripted].
func (l TokenBucket) Twin() (string, []int64) {
	return bucketTwin, []int64{l.Capacity, l.Refill, l.Per.Microseconds(), 0}
}

// Twin implements [Scripted].
func (l LeakyBucket) Twin() (string, []int64) {
	return bucketTwin, []int64{l.Capacity, l.Leak, l.Per.Microseconds(), 1} // 1: with a Delay
}

// Twin implements [Scripted].
func (l FixedWindow) Twin() (string, []int64) {
	return fixedWindowTwin, []int64{l.Limit, l.Window.Microseconds()}
}

// Twin implements [Scripted].
func (l SlidingWindow) Twin() (string, []int64) {
	return slidingWindowTwin, []int64{l.Limit, l.Window.Microseconds()}
}

// Twin implements [Scripted].
func (l SlidingWindowCounter) Twin() (string, []int64) {
	return slidingWindowCounterTwin, []int64{l.Limit, l.Window.Microseconds()}
}

// Twin implements [Scripted].
func (l Backoff) Twin() (string, []int64) {
	return backoffTwin, []int64{l.Free, l.Base.Microseconds(), l.Factor, l.Max.Microseconds(), l.LockAfter,
		l.Forget.Microseconds(), l.ForgetBeyond.Microseconds()}
}

// Twin implements [Scripted].
func (l Distinct) Twin() (string, []int64) {
	return distinctTwin, []int64{l.Limit, l.Window.Microseconds()}
}

// Twin implements [Scripted].
func (l Block) Twin() (string, []int64) { return blockTwin, []int64{l.For.Microseconds()} }
