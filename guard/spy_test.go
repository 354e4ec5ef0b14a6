package guard_test

import (
	"context"

	"authguard/limiter"
)

// spyStore notes the keys of the last Take, without those that only ask for a block, and how often each call was made.
type spyStore struct {
	limiter.Store
	keys                     []string
	takes, refunds, refunded int
}

func (s *spyStore) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	s.takes++
	s.keys = nil
	for _, c := range charges {
		if _, block := c.Limit.(limiter.Block); !block {
			s.keys = append(s.keys, c.Key)
		}
	}
	return s.Store.Take(ctx, charges)
}

func (s *spyStore) Refund(ctx context.Context, charges []limiter.Charge) error {
	s.refunds++
	for _, c := range charges {
		if c.Taken {
			s.refunded++
		}
	}
	return s.Store.Refund(ctx, charges)
}
