// Package testkit has what tests of several packages need: a clock that is set by
// hand, a buffer that a server may write to meanwhile, and processes that race.
package testkit
