// Package httpguard answers over HTTP for a guard: the refusal with an honest
// Retry-After, and the fields that tell an API's client where its limits stand.
//
//	pass, err := g.Check(r.Context(), attempt)
//	if err != nil {
//		httpguard.Refuse(w, r, err)
//		return
//	}
package httpguard
