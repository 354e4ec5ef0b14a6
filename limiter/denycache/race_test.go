//go:build race

package denycache_test

// raced says that the race detector slows these tests down tenfold.
const raced = true
