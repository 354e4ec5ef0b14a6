package policies

import (
	"context"
	"errors"

	"authguard/guard"
)

// solver is a challenge that whoever wants to solves: the attacks are about what is
// left to somebody who pays for it.
type solver struct{}

func (solver) Pose(token string) guard.Puzzle { return guard.Puzzle{Token: token} }

func (solver) Verify(context.Context, string, string, guard.Attempt) (bool, error) { return true, nil }

// check asks the guard, and once more with the challenge solved if that helps.
func (a *attack) check(ctx context.Context, attempt guard.Attempt, solves bool) (*guard.Pass, error) {
	pass, err := a.guard.Check(ctx, attempt)
	if denied := (*guard.Denied)(nil); solves && errors.As(err, &denied) && denied.Challenge != nil {
		attempt.Challenge = denied.Challenge.Token + ".solved"
		return a.guard.Check(ctx, attempt)
	}
	return pass, err
}
