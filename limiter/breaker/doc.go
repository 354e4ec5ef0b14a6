// Package breaker stands in front of a store that is reached over a network:
// while the store is down it answers at once, and a store that has become slow is
// not buried under calls that wait.
//
//	store, err := breaker.New(breaker.Config{Store: shared})
//
// When a few faults in a row, over a quarter of a second, have come back and
// nothing else, it lets nothing through for a moment, then one call to try; if that
// comes back, all do. What a caller does without the store is its
// own choice; package guard has it in each rule (OnOutage).
package breaker
