package guard

import (
	"context"
	"errors"
)

// ErrBusy is what verify returns to Do when it has no room to verify; Do then
// settles with [Pass.Shed].
var ErrBusy = errors.New("guard: no room to verify the secret now")

// Do guards an operation: it checks a, calls verify if the attempt may go on,
// and settles by what verify says. True is a success and false a failure. An
// error from verify means that the secret was not compared, by a fault of the
// application: the charges are given back. A panic, and a context that ended
// meanwhile, count as a failure: hanging up must not make a guess free.
//
// Do returns true only for a success whose client is still there. It returns
// Check's errors, verify's error, or the context's.
func (g *Guard) Do(ctx context.Context, a Attempt, verify func(context.Context, *Pass) (bool, error)) (bool, error) {
	pass, err := g.Check(ctx, a)
	if err != nil {
		return false, err
	}
	defer pass.Fail(ctx) // if verify panics; otherwise it is settled by then
	ok, err := verify(ctx, pass)
	switch {
	case ctx.Err() != nil:
		pass.Fail(ctx)
		return false, context.Cause(ctx)
	case errors.Is(err, ErrBusy):
		pass.Shed(ctx)
		return false, err
	case err != nil:
		pass.Cancel(ctx)
		return false, err
	case !ok:
		pass.Fail(ctx)
		return false, nil
	}
	pass.Succeed(ctx) // a refund that fails is reported to the Observer
	return true, nil
}
