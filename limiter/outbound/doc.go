// Package outbound keeps an HTTP client below somebody else's quota: a
// [Transport] that waits its turn before it sends, in a queue of bounded
// length, and that obeys the Retry-After of a 429 or 503 for that host.
//
//	l, err := limiter.New(memstore.New(memstore.Config{}), limiter.LeakyBucket{Capacity: 50, Leak: 10, Per: time.Second})
//	t, err := outbound.New(outbound.Config{Limiter: l})
//	client := &http.Client{Transport: t}
//
// It never sends a request again: what may be repeated is the caller's to know.
package outbound
