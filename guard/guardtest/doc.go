// Package guardtest is for the tests of an application: that its handlers are
// guarded, all of them, in every spelling of a request that its router takes.
//
// [Bounded] sends a wrong attempt a hundred times at one instant and then in
// some hundred other spellings, and fails if a secret is compared more often
// than the limit says:
//
//	func TestLoginIsBounded(t *testing.T) {
//		var compared guardtest.Counter // compared.Add() where the password is compared
//		guardtest.Bounded(t, guardtest.Target{
//			Handler:  newApplication(&compared),
//			Request:  func() *http.Request { return wrongLogin("alice@example.com") },
//			Verified: compared.Count,
//			Limit:    5,
//		})
//	}
//
// [EveryRoute] walks the routes of an application while its guard refuses
// everything: each route is either declared guarded, and then refuses before it
// compares anything, or declared to need no guard, with the reason.
//
// [Open] is a store that admits everything and keeps a record, for tests that log
// in a hundred times and are about something else. It works in tests only.
package guardtest
