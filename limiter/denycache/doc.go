// Package denycache answers what a shared store has just refused, without asking
// it again: a key that is known to be denied until some instant is denied here
// until then, in a fraction of a microsecond. It protects the store from a flood
// against an exhausted account or address, which is when it has most to do.
//
//	shared, err := redisstore.New(redisstore.Config{Client: client})
//	store, err := denycache.New(denycache.Config{Store: shared, Channel: shared})
//	go store.Run(ctx)
//
// It decides as the store would. Only the denial of a charge of cost 1 without a
// member is remembered, for the same numbers, and only when the store has denied
// the key for 10 seconds: nothing is charged to a key that denies, so by then
// nothing of it is refunded any more. Whatever sets a denied key free all the
// same, a late refund or Forget, is told to all processes by the [Channel], and
// forgotten there at once. While the channel gives no sign of life nothing is
// answered here, and when it breaks everything is forgotten.
//
// For what no channel tells (a clock that was set, data that a server lost, a
// value deleted by hand, and in a rolling deploy what processes with other numbers
// charge or refund) each key is asked about again every 10 seconds. Until then the
// answer may be the one that was true before: a no for too long, never a yes.
//
// A batch is denied here as soon as one of its voting charges is known to be
// denied. The others are not asked ([limiter.Decision.NotAsked]), nor is anything
// charged to them; so the wait that is told is the longest of those that are known.
// An error that the store would have found in one of the others is not found.
package denycache
