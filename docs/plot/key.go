package main

import (
	"time"

	"authguard/limiter"
)

// start is the instant from which all times here count. Windows of up to a day
// begin at it.
var start = time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)

func micros(at time.Duration) int64 { return start.Add(at).UnixMicro() }

// key is one key under one or more limits. All of them admit and are charged, or
// none is.
type key struct {
	limits []limiter.Limit
	states [][]byte
}

func newKey(limits ...limiter.Limit) *key {
	return &key{limits, make([][]byte, len(limits))}
}

// take asks for ask and tells what each limit says.
func (k *key) take(at time.Duration, ask limiter.Ask) (admitted bool, said []limiter.Decision, err error) {
	said, next, err := k.ask(at, ask)
	if err != nil {
		return false, nil, err
	}
	admitted = true
	for _, d := range said {
		admitted = admitted && d.Allowed
	}
	for i, d := range said {
		// A denial may mend what a clock that stepped back left in the future.
		if len(next[i]) > 0 && (admitted || !d.Allowed) {
			k.states[i] = next[i]
		}
	}
	if admitted {
		return true, said, nil
	}
	return false, said, k.asThingsAre(at, ask, said)
}

// look says what take would, and changes nothing.
func (k *key) look(at time.Duration, ask limiter.Ask) ([]limiter.Decision, error) {
	said, _, err := k.ask(at, ask)
	if err != nil {
		return nil, err
	}
	return said, k.asThingsAre(at, ask, said)
}

func (k *key) ask(at time.Duration, ask limiter.Ask) (said []limiter.Decision, next [][]byte, err error) {
	for i, limit := range k.limits {
		d, state, err := limiter.Decide(limit, nil, k.states[i], micros(at), ask)
		if err != nil {
			return nil, nil, err
		}
		said, next = append(said, d), append(next, state)
	}
	return said, next, nil
}

// asThingsAre replaces votes for what is not charged by what is left without it.
func (k *key) asThingsAre(at time.Duration, ask limiter.Ask, said []limiter.Decision) error {
	for i := range said {
		if !said[i].Allowed {
			continue
		}
		d, _, err := limiter.Decide(k.limits[i], nil, k.states[i], micros(at), limiter.Ask{Member: ask.Member})
		if err != nil {
			return err
		}
		said[i] = d
	}
	return nil
}

// refund takes the charge of ask, made at charged, back at at.
func (k *key) refund(at, charged time.Duration, ask limiter.Ask) error {
	for i, limit := range k.limits {
		left, err := limit.Refund(nil, k.states[i], micros(at), micros(charged), ask)
		if err != nil {
			return err
		}
		k.states[i] = left
	}
	return nil
}

// admits takes one unit of the only limit. The numbers of a plot are right, so
// an error is a bug.
func (k *key) admits(at time.Duration, member string) bool {
	admitted, _, err := k.take(at, limiter.Ask{Cost: 1, Member: limiter.Member(member)})
	if err != nil {
		panic(err)
	}
	return admitted
}

// hammer asks for one unit at each step from first to last, and returns the
// instants of the admissions.
func hammer(limit limiter.Limit, first, last, step time.Duration, member func(n int) string) []time.Duration {
	var admitted []time.Duration
	k := newKey(limit)
	for n, at := 0, first; at <= last; n, at = n+1, at+step {
		if k.admits(at, member(n)) {
			admitted = append(admitted, at)
		}
	}
	return admitted
}
