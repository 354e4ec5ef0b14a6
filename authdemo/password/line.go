package password

import (
	"net/netip"
	"slices"
)

// A line is who waits at a gate: a queue for each address, which take turns.
type line struct {
	waiting int
	queues  map[netip.Prefix][]*waiter // the first is served first; none is empty
	turns   []netip.Prefix             // every key of queues once, next in turn first
}

func newLine() line { return line{queues: make(map[netip.Prefix][]*waiter)} }

// add puts a newcomer at the end of its address's queue.
func (l *line) add(from netip.Prefix) *waiter {
	if len(l.queues[from]) == 0 {
		l.turns = append(l.turns, from)
	}
	w := &waiter{granted: make(chan struct{}), displaced: make(chan struct{})}
	l.queues[from] = append(l.queues[from], w)
	l.waiting++
	return w
}

// next takes the first of the address whose turn it is, and sends that address to
// the end of the round. Somebody is waiting.
func (l *line) next() *waiter {
	from := l.turns[0]
	w := l.queues[from][0]
	l.remove(from, 0)
	if len(l.queues[from]) > 0 {
		l.turns = append(l.turns[1:], from)
	}
	return w
}

// longest is the address with the longest queue, and how long it is.
func (l *line) longest() (from netip.Prefix, length int) {
	for _, f := range l.turns {
		if n := len(l.queues[f]); n > length {
			from, length = f, n
		}
	}
	return from, length
}

// displace sends the last of an address's queue away; false if there is none.
func (l *line) displace(from netip.Prefix) bool {
	queue := l.queues[from]
	if len(queue) == 0 {
		return false
	}
	last := len(queue) - 1
	close(queue[last].displaced)
	l.remove(from, last)
	return true
}

func (l *line) remove(from netip.Prefix, i int) {
	l.waiting--
	l.queues[from] = slices.Delete(l.queues[from], i, i+1)
	if len(l.queues[from]) == 0 {
		delete(l.queues, from)
		l.turns = slices.DeleteFunc(l.turns, func(p netip.Prefix) bool { return p == from })
	}
}
