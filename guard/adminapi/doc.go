// Package adminapi lets operators ask a running application whom its guard refuses
// and why, and change it: inspect, list, unlock, block and unblock. It works with
// every store, this process's memory included, and guardctl speaks it.
//
//	api, err := adminapi.New(adminapi.Config{Guard: g, Token: token})
//	mux.Handle("/admin/", http.StripPrefix("/admin", api))
//
// Every request needs the token (Authorization: Bearer). Wrong ones are guesses at a
// secret, which the guard itself bounds by its policy "admin"; a request without one
// is no guess and learns nothing. Answers are JSON, and no cache keeps them.
//
//	POST /inspect  {"action", "account", "ip", "device"}  why an attempt is refused; consumes nothing
//	GET  /refused?n=100                                    who is refused now
//	POST /unlock   {"account", "actions"}                  forgets what is held against an account
//	POST /block    {"account" or "ip", "for"}              refuses somebody for so long
//	POST /unblock  {"account" or "ip"}                     ends that
//
// Names travel in bodies, not in URLs, which are logged. Each field is text and may be
// left out where that makes sense; "actions" has commas, "for" is a duration such as
// 36h. What is changed is told to the guard's Observer, with the request's context.
//
// An [Operator] is the same in Go: [Of] a guard, or a [Client] of such an API.
package adminapi
