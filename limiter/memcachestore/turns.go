package memcachestore

import (
	"context"
	"hash/maphash"
)

// turns has one goroutine of the process at a time write a key, so that only
// processes get in each other's way. Keys share turns; whoever has one waits for
// no other, so they never wait in a circle.
type turns struct {
	seed  maphash.Seed
	taken [256]chan struct{}
}

func newTurns() *turns {
	t := &turns{seed: maphash.MakeSeed()}
	for i := range t.taken {
		t.taken[i] = make(chan struct{}, 1)
	}
	return t
}

// wait returns when it is the caller's turn to write key, which must be ended. It
// reports whether others went before, who may have written.
func (t *turns) wait(ctx context.Context, key string) (end func(), waited bool, err error) {
	turn := t.taken[maphash.String(t.seed, key)%uint64(len(t.taken))]
	end = func() { <-turn }
	select {
	case turn <- struct{}{}:
		return end, false, nil
	default:
	}
	select {
	case turn <- struct{}{}:
		return end, true, nil
	case <-ctx.Done():
		return nil, true, ctx.Err()
	}
}
