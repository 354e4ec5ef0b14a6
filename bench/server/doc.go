// Package server starts a redis-server of the benchmark's own, says what it has
// used of the processor, and ends it.
package server
