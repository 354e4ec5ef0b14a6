// Package limitertest checks laws and stores against the contract of package
// limiter. Whoever writes one calls it from a test of their own.
//
// A law, with every row of numbers that matters:
//
//	func TestLeakyBucket(t *testing.T) {
//		limitertest.Law(t, LeakyBucket{Capacity: 10, Leak: 1, Per: time.Second})
//	}
//
// A store, which need not know any law:
//
//	func TestStore(t *testing.T) {
//		limitertest.Store(t, func(t *testing.T, now func() time.Time) limiter.Store {
//			return mystore.New(mystore.Config{Now: now})
//		})
//	}
//
// A store that decides a batch in several steps takes [CompensatingStore] instead.
//
// [Law] and [Rescale] walk random histories and check the promises written at
// [limiter.Limit] in each of their steps. [Store] tells histories of several
// keys, races goroutines, and compares with a map. [Traces] replays the
// histories in testdata, which are written to be read aloud.
//
// Histories are the same in each run. LIMITERTEST_SEED=n makes [Law] and
// [Rescale] walk another one.
package limitertest
