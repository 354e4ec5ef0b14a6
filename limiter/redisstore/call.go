package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"authguard/limiter"
)

// call is one call of the store, and its memory.
type call struct {
	parts []*part
	spare []*part // of earlier calls
	state []byte  // what a law would store, of no use here
	lost  bool    // given up while it was under way: its memory may still be read
}

// part is what one script decides of a call: its charges of one slot on a cluster,
// all of them elsewhere.
type part struct {
	mode   mode
	slot   int
	node   *redis.Client
	keys   []string
	items  []item
	packed []byte // as the script takes it
	laws   uint64 // the set of them
	work   int    // of the server

	answer string
	err    error
	done   chan struct{} // closed when answer or err is there; nil if the caller itself sends

	queue   *queue // that it waits in, if the caller does not send
	answers int    // of the queue, when it came
}

// item is one charge of a part.
type item struct {
	index  int   // in the caller's slice
	limit  int64 // Decision.Limit
	barred bool
}

func (s *Store) begin() *call { return s.calls.Get().(*call) }

func (s *Store) end(c *call) {
	if c.lost {
		return
	}
	for _, p := range c.parts {
		clear(p.keys)
		*p = part{keys: p.keys[:0], items: p.items[:0], packed: p.packed[:0]}
	}
	*c = call{spare: append(c.spare, c.parts...), parts: c.parts[:0], state: c.state[:0]}
	s.calls.Put(c)
}

// part is where charges of a slot go that are asked about in a mode.
func (c *call) part(m mode, slot int) *part {
	for _, p := range c.parts {
		if p.slot == slot && p.mode == m {
			return p
		}
	}
	var p *part
	if n := len(c.spare); n > 0 {
		p, c.spare = c.spare[n-1], c.spare[:n-1]
	} else {
		p = new(part)
	}
	p.mode, p.slot = m, slot
	p.packed = append(p.packed, byte(m), 0, 0, 0, 0)
	c.parts = append(c.parts, p)
	return p
}

// ask adds a charge to be decided. The law in Go says whether it makes sense: its
// numbers, its cost, its member. An advisory cost that is too high is barred, not
// an error.
func (c *call) ask(s *Store, m mode, charge *limiter.Charge, index int) error {
	if charge.Advisory < 0 || charge.Advisory > maxGroups {
		return fmt.Errorf("redisstore: Advisory is %d, want 0 to %d", charge.Advisory, maxGroups)
	}
	d, state, err := limiter.Decide(charge.Limit, c.state[:0], nil, 0, charge.Ask)
	c.state = state[:0]
	tooHigh := charge.Advisory > 0 && errors.Is(err, limiter.ErrCostTooHigh)
	if err != nil && !tooHigh {
		return err
	}
	return c.add(s, m, charge, item{index: index, limit: d.Limit, barred: tooHigh})
}

func (c *call) add(s *Store, m mode, charge *limiter.Charge, it item) error {
	l, err := s.scripts.compile(charge.Limit)
	if err != nil {
		return err
	}
	slot := 0
	if s.cluster != nil {
		slot = slotOf(charge.Key)
	}
	p := c.part(m, slot)
	p.laws |= 1 << l.law
	p.work += l.work
	p.keys = append(p.keys, charge.Key)
	p.items = append(p.items, it)
	flags := byte(charge.Advisory)
	if it.barred {
		flags |= barred
	}
	p.packed = appendCharge(p.packed, l.law, charge, flags, l.numbers)
	binary.BigEndian.PutUint32(p.packed[1:], uint32(len(p.items)))
	return nil
}

// run has all parts decided, those of a node by one message, all nodes at one time.
// It returns when all are, or at the deadline. What then waits behind others whom the
// node does answer meets a crowd, which anybody can send, and no outage.
func (s *Store) run(ctx context.Context, c *call) error {
	if err := ctx.Err(); err != nil || len(c.parts) == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.route(ctx, c.parts); err != nil {
		return err
	}
	s.sendAll(ctx, s.line.join(c.parts))
	for i, p := range c.parts {
		if p.done == nil {
			continue
		}
		select {
		case <-p.done:
			continue
		case <-ctx.Done():
		}
		waited, crowded := s.line.leave(p)
		where := "waited to be sent"
		if !waited {
			where, c.lost = "was under way", true
		}
		err := fmt.Errorf("redisstore: %w while it %s", ctx.Err(), where)
		if crowded {
			err = fmt.Errorf("%w: %w", err, limiter.ErrOverloaded)
		}
		// Whoever sends the part may still write to it.
		c.parts[i] = &part{mode: p.mode, items: p.items, err: err}
	}
	return nil
}

// route finds each part's node.
func (s *Store) route(ctx context.Context, parts []*part) error {
	for _, p := range parts {
		p.node = s.single
		if s.cluster == nil {
			continue
		}
		var err error
		if p.node, err = s.cluster.MasterForKey(ctx, p.keys[0]); err != nil {
			return fault(err)
		}
	}
	return nil
}

// read fills in what was answered, and returns the first error.
func (c *call) read(charges []limiter.Charge) (first error) {
	for _, p := range c.parts {
		err := p.err
		switch {
		case err != nil:
		case p.mode == refund:
			err = readRefunds(p)
		default:
			err = readDecisions(p, charges)
		}
		if first == nil {
			first = err
		}
	}
	return first
}
