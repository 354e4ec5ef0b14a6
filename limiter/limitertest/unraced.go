//go:build !race

package limitertest

// raced says that the race detector is on.
const raced = false
