//go:build race

package limitertest

const raced = true
