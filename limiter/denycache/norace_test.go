//go:build !race

package denycache_test

const raced = false
