// Package testkit has what tests of several packages need: a clock that is set by
// hand, and a buffer that a server may write to meanwhile.
package testkit
