package memstore

import (
	"context"
	"errors"
	"math/bits"

	"authguard/limiter"
)

// item is one charge of a batch on its way.
type item struct {
	hash     hash
	shard    *shard
	at       int   // its slot
	from, to int32 // its new state among the batch's; empty: the state stands as it is
	known    bool  // the slot has its state
}

func (it *item) writes() bool { return it.from < it.to }

// shardSet is a set of shards, locked in the order of their numbers, so that
// two batches never wait for each other in a circle.
type shardSet [maxShards / 64]uint64

func (s *Store) lock(set *shardSet) {
	for w, word := range set {
		for ; word != 0; word &= word - 1 {
			s.shards[w*64+bits.TrailingZeros64(word)].mu.Lock()
		}
	}
}

func (s *Store) unlock(set *shardSet) {
	for w, word := range set {
		for ; word != 0; word &= word - 1 {
			s.shards[w*64+bits.TrailingZeros64(word)].mu.Unlock()
		}
	}
}

// place finds the shards of charges.
func (s *Store) place(items []item, charges []limiter.Charge) (set shardSet) {
	for i := range charges {
		h := s.hash(charges[i].Key)
		n := s.shardOf(h)
		items[i].hash, items[i].shard = h, &s.shards[n]
		set[n/64] |= 1 << (n % 64)
	}
	return set
}

// inline is the length of batches that need no memory of their own.
const inline = 12

// Take implements [limiter.Store].
func (s *Store) Take(ctx context.Context, charges []limiter.Charge) (bool, error) {
	for i := range charges {
		charges[i].Taken = false
	}
	if err := check(ctx, charges); err != nil {
		return false, err
	}
	if len(charges) == 1 && charges[0].Advisory == 0 {
		return s.takeOne(&charges[0])
	}
	var buf [inline]item
	items := buf[:0]
	if len(charges) > inline {
		items = make([]item, 0, len(charges))
	}
	items = items[:len(charges)]
	set := s.place(items, charges)
	s.lock(&set)
	defer s.unlock(&set)
	now := s.now() // under the locks, so that the log of a key never runs backwards
	b := batch{items: items, now: now}
	return b.take(charges)
}

// takeOne is Take for the batch of one, which most limiters ask.
func (s *Store) takeOne(c *limiter.Charge) (bool, error) {
	h := s.hash(c.Key)
	sh := &s.shards[s.shardOf(h)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	now := s.now()
	i, known := sh.find(h)
	var old []byte
	if known {
		old = sh.stateAt(i)
	}
	state, err := c.Limit.Take(&c.Decision, sh.scratch[:0], old, now, c.Ask)
	if err != nil {
		return false, &limiter.ChargeError{Err: err}
	}
	if len(state) == 0 { // a denial, or a charge that changes nothing
		c.Taken = c.Decision.Allowed
		return c.Taken, nil
	}
	sh.keepScratch(state)
	if !known || !sh.fits(i, len(state)) {
		batch := [1]item{{hash: h}}
		if !sh.reserve(h, len(state), now, batch[:]) {
			sh.full++
			return false, ErrFull
		}
		i, _ = sh.find(h)
	}
	sh.write(i, state, c.Limit, &c.Decision, now)
	c.Taken = c.Decision.Allowed
	if c.Taken {
		sh.sweepInTurn(now)
	}
	return c.Taken, nil
}

// Peek implements [limiter.Store].
func (s *Store) Peek(ctx context.Context, charges []limiter.Charge) error {
	if err := check(ctx, charges); err != nil {
		return err
	}
	items := make([]item, len(charges))
	set := s.place(items, charges)
	s.lock(&set)
	defer s.unlock(&set)
	b := batch{items: items, now: s.now()}
	if _, err := b.decide(charges); err != nil {
		return err
	}
	return b.restore(charges)
}

// Refund implements [limiter.Store].
func (s *Store) Refund(ctx context.Context, charges []limiter.Charge) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var failed error
	now := s.now()
	for i := range charges {
		c := &charges[i]
		if !c.Taken {
			continue
		}
		c.Taken = false // whatever comes of it: a refund is made once
		if err := s.refundOne(c, now); err != nil && failed == nil {
			failed = &limiter.ChargeError{Index: i, Err: err}
		}
	}
	return failed
}

func (s *Store) refundOne(c *limiter.Charge, now int64) error {
	if c.Limit == nil {
		return errors.New("memstore: charge has no Limit")
	}
	h := s.hash(c.Key)
	sh := &s.shards[s.shardOf(h)]
	sh.mu.Lock()
	defer sh.mu.Unlock()
	return sh.refund(h, c, now)
}

func check(ctx context.Context, charges []limiter.Charge) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return limiter.CheckBatch(charges)
}

// batch is a call under way, with all its shards locked. Its charges stay apart:
// laws are given parts of them, and the compiler would put the items on the heap, too.
type batch struct {
	items []item
	now   int64
	moved bool // some slots are no longer where they were when it was decided
}

func (b *batch) take(charges []limiter.Charge) (bool, error) {
	states, err := b.decide(charges)
	if err != nil {
		return false, err
	}
	votes := true
	for i := range charges {
		c := &charges[i]
		votes = votes && (c.Advisory > 0 || c.Decision.Allowed)
	}
	all := votes
	for i := range charges {
		c := &charges[i]
		c.Taken = votes && c.Decision.Allowed && (c.Advisory == 0 || groupAllows(charges, c.Advisory))
		all = all && c.Taken
	}
	if !all {
		if err := b.restore(charges); err != nil {
			return false, err
		}
		b.mend(charges, states)
	}
	if !votes {
		return false, nil
	}
	if err := b.reserve(charges); err != nil {
		for i := range charges {
			charges[i].Taken = false
		}
		return false, err
	}
	for i := range b.items {
		if it, c := &b.items[i], &charges[i]; c.Taken && it.writes() {
			if b.moved {
				it.at, _ = it.shard.find(it.hash)
			}
			it.shard.write(it.at, states[it.from:it.to], c.Limit, &c.Decision, b.now)
		}
	}
	for i := range b.items { // only now that no key of the batch looks unused
		b.items[i].shard.sweepInTurn(b.now)
	}
	return true, nil
}

// decide asks each limit. It returns the new states, end to end, in memory that
// is good while the shards are locked.
func (b *batch) decide(charges []limiter.Charge) (states []byte, err error) {
	states = b.items[0].shard.scratch[:0]
	for i := range b.items {
		it, c := &b.items[i], &charges[i]
		var old []byte
		if it.at, it.known = it.shard.find(it.hash); it.known {
			old = it.shard.stateAt(it.at)
		}
		it.from = int32(len(states))
		states, err = c.Limit.Take(&c.Decision, states, old, b.now, c.Ask)
		if err != nil && (c.Advisory == 0 || !errors.Is(err, limiter.ErrCostTooHigh)) {
			return nil, &limiter.ChargeError{Index: i, Err: err}
		}
		it.to = int32(len(states))
	}
	b.items[0].shard.keepScratch(states)
	return states, nil
}

func groupAllows(charges []limiter.Charge, group int) bool {
	for i := range charges {
		if c := &charges[i]; c.Advisory == group && !c.Decision.Allowed {
			return false
		}
	}
	return true
}

// restore tells of the charges that are admitted and yet not taken how things
// are without them.
func (b *batch) restore(charges []limiter.Charge) error {
	for i := range b.items {
		it, c := &b.items[i], &charges[i]
		if c.Taken || !c.Decision.Allowed {
			continue
		}
		var old []byte
		if it.known {
			old = it.shard.stateAt(it.at)
		}
		d := &it.shard.aside
		if _, err := c.Limit.Take(d, nil, old, b.now, limiter.Ask{Member: c.Member}); err != nil {
			return &limiter.ChargeError{Index: i, Err: err}
		}
		c.Decision.Remaining, c.Decision.ResetAfter = d.Remaining, d.ResetAfter
	}
	return nil
}

// mend writes what denying limits made of a state from the future.
func (b *batch) mend(charges []limiter.Charge, states []byte) {
	for i := range b.items {
		it, c := &b.items[i], &charges[i]
		if c.Decision.Allowed || it.from == it.to {
			continue
		}
		if it.known && int(it.to-it.from) <= int(it.shard.slots[it.at].size) {
			it.shard.write(it.at, states[it.from:it.to], c.Limit, &c.Decision, b.now)
		}
	}
}

// reserve makes room for the states of all taken charges, or for none.
func (b *batch) reserve(charges []limiter.Charge) error {
	for i := range b.items {
		it := &b.items[i]
		if !charges[i].Taken || !it.writes() || !b.moved && it.known && it.shard.fits(it.at, int(it.to-it.from)) {
			continue
		}
		b.moved = true
		if it.shard.reserve(it.hash, int(it.to-it.from), b.now, b.items) {
			continue
		}
		it.shard.full++
		for _, earlier := range b.items[:i] {
			earlier.shard.unreserve(earlier.hash)
		}
		return ErrFull
	}
	return nil
}

// held reports that h is a key of the batch, and must not be evicted for it.
func held(batch []item, h hash) bool {
	for i := range batch {
		if batch[i].hash == h {
			return true
		}
	}
	return false
}
