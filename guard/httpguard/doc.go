// Package httpguard stands between HTTP and a guard.
//
// A handler that compares a secret itself asks the guard and needs one function:
//
//	pass, err := g.Check(r.Context(), attempt)
//	if err != nil {
//		httpguard.Refuse(w, r, err) // 429 or 503 with an honest Retry-After, or 400, or 500
//		return
//	}
//
// The rest is an [Edge], made once beside the guard:
//
//	edge, err := httpguard.New(httpguard.Config{Guard: g})
//
// [Edge.Guard] wraps a login that exists, and settles by its answer.
// [Edge.LimitAddress] limits what comes before anybody has proved who he is, by
// address; [Edge.Limit] what comes behind an authentication, such as an API with
// keys, and tells the client where its limits stand ([Dialect]).
//
// The order from the outside is: the client's address ([Clients]), CORS,
// LimitAddress, authentication, Limit or Guard, the handler. What is in the wrong
// place is refused with 500 and logged, and charged to nobody.
package httpguard
