package limitertest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"authguard/limiter"
)

// checkGarbage gives the law states that it never wrote. Each is ErrState or
// read as something: with an answer that could be true, and no wait beyond the
// longest life of a key.
func (h *history) checkGarbage() {
	h.reset = limiter.MaxWindow
	for range 400 {
		h.readGarbage(h.garbage())
	}
}

// garbage is random bytes, words that look like instants and counts, or the
// history's own state with some bytes changed.
func (h *history) garbage() []byte {
	var state []byte
	switch h.rnd.IntN(4) {
	case 0:
		for range h.rnd.IntN(40) {
			state = append(state, byte(h.rnd.Uint32()))
		}
	case 1:
		for range h.rnd.IntN(9) {
			state = binary.BigEndian.AppendUint64(state, uint64(h.word()))
		}
	case 2:
		state = binary.BigEndian.AppendUint64(state, uint64(h.word()))
		state = binary.BigEndian.AppendUint32(state, uint32(h.word()))
		state = binary.BigEndian.AppendUint32(state, uint32(h.word()))
	case 3:
		state = bytes.Clone(h.state)
		for range min(len(state), 3) {
			state[h.rnd.IntN(len(state))] = byte(h.rnd.Uint32())
		}
	}
	return state
}

func (h *history) word() int64 {
	life := h.life.Microseconds()
	return h.pick(
		0, 1, -1, 1<<53-1, 1<<53, -1<<63, 1<<63-1,
		h.now, h.now-1, h.now+1, h.now-life, h.now+life, h.now-h.rnd.Int64N(life), h.now+h.rnd.Int64N(life),
		h.most, h.most+1, limiter.MaxLimit-1, limiter.MaxLimit, limiter.MaxLimit+1, h.rnd.Int64N(limiter.MaxLimit),
		int64(h.rnd.Uint64()),
	)
}

func (h *history) readGarbage(state []byte) {
	cost := h.rnd.Int64N(h.most + 1)
	for range 3 {
		what := fmt.Sprintf("take %d of the state %x", cost, state)
		defer h.noPanic(what)()
		d, out, err := h.ask(state, h.now, cost)
		if err != nil {
			if !errors.Is(err, limiter.ErrState) || string(out) != prefix {
				h.fail("%s: %v, dst %q, want ErrState and nothing appended", what, err, out)
			}
			return
		}
		if problem := h.invalid(d, h.now); problem != "" {
			h.fail("%s: %s", what, problem)
		}
		if _, err := h.limit.Refund(nil, state, h.now, h.word(), limiter.Ask{Cost: cost}); err != nil && !errors.Is(err, limiter.ErrState) {
			h.fail("refund of %d from the state %x: %v, want ErrState or none", cost, state, err)
		}
		if len(out) > len(prefix) {
			state = out[len(prefix):]
		}
	}
}

// noPanic reports a panic as a broken promise, with the history.
func (h *history) noPanic(what string) func() {
	return func() {
		if p := recover(); p != nil {
			h.fail("%s: panic: %v", what, p)
		}
	}
}
