//go:build !race

package policies_test

const raced = false
