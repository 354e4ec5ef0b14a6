package redisstore

import (
	"crypto/sha1" // the name that EVALSHA wants, no secret
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"

	"authguard/limiter"
)

//go:embed store.lua
var storeScript string

// scripts puts the twins of laws into scripts. A script has the laws of a batch
// and no others, because the server makes each anew at every call.
type scripts struct {
	mu    sync.RWMutex
	laws  map[string]int // by source: the law's number, from 1
	order []string       // sources by number
	made  map[uint64]script
	known map[limiter.Limit]*compiled
}

// script is one set of laws with the code around them.
type script struct{ source, sha string }

// compiled is a limit as the script takes it.
type compiled struct {
	law     byte
	numbers []byte
	work    int
}

const (
	maxLaws    = 63   // a set of laws is a word of bits
	maxNumbers = 8    // the script's formats
	maxKnown   = 4096 // limits whose compiled form is kept
)

// compile is l as the script takes it. A limit without a twin is an error.
func (s *scripts) compile(l limiter.Limit) (*compiled, error) {
	s.mu.RLock()
	c := s.known[l]
	s.mu.RUnlock()
	if c != nil {
		return c, nil
	}
	scripted, ok := l.(limiter.Scripted)
	if !ok {
		return nil, fmt.Errorf("redisstore: %s has no twin in Lua (limiter.Scripted)", l.Law())
	}
	source, numbers := scripted.Twin()
	if len(numbers) > maxNumbers {
		return nil, fmt.Errorf("redisstore: %s has %d numbers, want at most %d", l.Law(), len(numbers), maxNumbers)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	law := s.laws[source]
	if law == 0 {
		if len(s.order) == maxLaws {
			return nil, fmt.Errorf("redisstore: more than %d laws", maxLaws)
		}
		s.order = append(s.order, source)
		law = len(s.order)
		s.laws[source] = law
	}
	c = &compiled{law: byte(law), work: work(l)}
	for _, n := range numbers {
		c.numbers = binary.BigEndian.AppendUint64(c.numbers, uint64(n))
	}
	if len(s.known) < maxKnown {
		s.known[l] = c
	}
	return c, nil
}

// work is what a charge costs a server, in units of a plain one (some 5 µs). Logs
// are read and written whole, and cost as much again for every 160 bytes.
func work(l limiter.Limit) int {
	d, one, err := limiter.Decide(l, nil, nil, 0, limiter.Ask{Cost: 1, Member: limiter.Member("one")})
	if err != nil {
		return 1
	}
	_, two, err := limiter.Decide(l, nil, one, 0, limiter.Ask{Cost: 1, Member: limiter.Member("two")})
	if err != nil || len(two) <= len(one) {
		return 1
	}
	return 1 + int(d.Limit)*(len(two)-len(one))/160
}

// of is the script for a set of laws: bit i stands for law i.
func (s *scripts) of(laws uint64) script {
	s.mu.RLock()
	made, ok := s.made[laws]
	s.mu.RUnlock()
	if ok {
		return made
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	b.WriteString("local laws = {}\n")
	for i, source := range s.order {
		if laws&(1<<(i+1)) != 0 {
			fmt.Fprintf(&b, "laws[%d] = {(function()\n%s\nend)()}\n", i+1, source)
		}
	}
	b.WriteString(storeScript)
	made.source = b.String()
	sum := sha1.Sum([]byte(made.source))
	made.sha = hex.EncodeToString(sum[:])
	s.made[laws] = made
	return made
}
