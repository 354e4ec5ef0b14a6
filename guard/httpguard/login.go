package httpguard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"

	"authguard/guard"
	"authguard/internal/fields"
)

// Guard is middleware around a handler that compares a secret, such as an
// existing login. account tells whose secret is tried, as typed; [Field] reads
// it from a form or JSON. The guard is asked before the handler runs, with the
// client's address ([ClientIP]) and its answer to a challenge; what account refuses is charged to that address
// and answered 400, 413 or 415.
//
// The handler finds the attempt in its context ([PassFrom]): it looks the account
// up by Pass.Account and does nothing where Pass.Silenced. How the attempt ended
// is read from its answer:
//
//   - 2xx or 304 is a success;
//   - everything else is a failure: another status, a panic, a client that went
//     away. So is 3xx, since many forms redirect either way, and so is 5xx, since
//     nobody can tell from it whether the secret was compared before the fault. So is
//     a handler that writes nothing: frameworks answer its error further out.
//
// A handler for which that is not true says so itself before it returns, and is
// believed: PassFrom(ctx).Succeed where it redirects after a success, Fail where it
// answers 200 to a wrong password, Cancel or Shed where it could not compare.
//
// An attempt that a queue ([limiter.LeakyBucket]) admits runs at once: only Limit
// and LimitAddress wait for a turn.
//
// OPTIONS is answered here, uncharged: CORS middleware belongs outside, where it
// also lets pages of other origins read a refusal.
func (e *Edge) Guard(action string, account func(*http.Request) (string, error)) func(http.Handler) http.Handler {
	e.knows(action)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if isOptions(w, r) {
				return
			}
			name, err := account(r)
			if err != nil {
				e.malformed(w, r, action, err)
				return
			}
			pass, err := e.guard.Check(r.Context(), guard.Attempt{
				Action: action, Account: name, IP: ClientIP(r), Device: e.deviceOf(r), Challenge: e.answer(r),
			})
			if err != nil {
				e.refuseStranger(w, r, err)
				return
			}
			e.serve(w, r, pass, next)
		})
	}
}

// deviceOf is the device cookie of a request, or "".
func (e *Edge) deviceOf(r *http.Request) string {
	if e.device == "" {
		return ""
	}
	c, err := r.Cookie(e.device)
	if err != nil {
		return ""
	}
	return c.Value
}

// Field reads an account's name from the field of a form or of a JSON object,
// and leaves the body to the handler. It refuses what the handler could read
// otherwise: a field that is missing, comes twice or in another spelling, an
// array, a key that a JSON object has twice, another value in the query string.
// The body must be application/x-www-form-urlencoded or application/json, in
// UTF-8, not compressed, and at most 8 KiB.
func Field(name string) func(*http.Request) (string, error) {
	return func(r *http.Request) (string, error) {
		values, err := fields.Peek(r, name)
		return values[name], err
	}
}

type passKey struct{}

// PassFrom is the attempt that [Edge.Guard], [Edge.Limit] or [Edge.LimitAddress]
// has let pass, or nil. Of several, it is the innermost.
func PassFrom(ctx context.Context) *guard.Pass {
	p, _ := ctx.Value(passKey{}).(*guard.Pass)
	return p
}

// serve runs next and settles by its answer, unless next has settled.
func (e *Edge) serve(w http.ResponseWriter, r *http.Request, pass *guard.Pass, next http.Handler) {
	ctx := r.Context()
	defer pass.Fail(ctx) // whatever is no success
	out := &recorder{ResponseWriter: w}
	next.ServeHTTP(out, r.WithContext(context.WithValue(ctx, passKey{}, pass)))
	switch {
	case pass.Settled():
	case ctx.Err() != nil: // hanging up must not make a guess free
	case out.succeeded():
		_ = pass.Succeed(ctx) // a refund that fails is reported to the Observer
	case out.status == 0 && !out.hijacked:
		e.once(slog.LevelWarn, "httpguard: a handler writes nothing and does not say how the attempt ended: it counts as failed; write a status, or call PassFrom(ctx).Succeed or Fail")
	case out.status >= 300 && out.status < 400:
		e.once(slog.LevelWarn, fmt.Sprintf("httpguard: a handler answers %d and does not say how the attempt ended: it counts as failed; call PassFrom(ctx).Succeed or Fail", out.status))
	}
}

// malformed answers a request that names no account, after charging its address.
func (e *Edge) malformed(w http.ResponseWriter, r *http.Request, action string, reason error) {
	ctx := context.WithoutCancel(r.Context()) // a body that ends early is often a client that is gone
	pass, err := e.guard.Check(ctx, guard.Attempt{Action: action, IP: ClientIP(r)})
	if err != nil && !errors.Is(err, guard.ErrNoAccount) { // which says that nothing is counted by address
		e.refuseStranger(w, r, err)
		return
	}
	if err == nil {
		_ = pass.Fail(ctx) // asks no store
	}
	p := notUnderstood()
	if f := (*fields.Error)(nil); errors.As(reason, &f) {
		p.Status, p.Detail = f.Status, f.Detail
	}
	answer(w, r, p, e.page)
}

// refuseStranger answers somebody who may know no counter, not even what other
// middleware has told: its window could end after Retry-After.
func (e *Edge) refuseStranger(w http.ResponseWriter, r *http.Request, err error) {
	clearFields(w.Header())
	e.Refuse(w, r, err)
}
