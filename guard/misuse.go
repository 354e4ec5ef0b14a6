package guard

import (
	"log/slog"
	"sync"
	"time"

	"authguard/limiter/memstore"
)

// warnOfMisuse logs what New cannot refuse and hardly anybody means.
func warnOfMisuse(c Config) {
	if _, inMemory := c.Store.(*memstore.Store); inMemory && c.Instances > 1 {
		slog.Warn("guard: the store is this process's memory, so each instance counts for itself and limits hold as often as there are instances; share a store", "instances", c.Instances)
	}
	if made.often(time.Now()) {
		slog.Warn("guard: New is called very often; make one Guard for the life of the process, for what it counts in memory ends with it")
	}
}

// manyGuards is how many guards in one minute are surely one a request.
const manyGuards = 1000

// made counts the guards that this process makes.
var made guardCounter

type guardCounter struct {
	mu    sync.Mutex
	since time.Time
	n     int
	said  bool
}

// often notes a guard made at now, and is true the first time that there are
// many in a minute.
func (c *guardCounter) often(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.since) >= time.Minute {
		c.since, c.n = now, 0
	}
	c.n++
	if c.n < manyGuards || c.said {
		return false
	}
	c.said = true
	return true
}
