package main

import (
	"authguard/bench/harness"
	"authguard/bench/memory"
	"authguard/bench/overredis"
)

// growth draws curves: what becomes of a check when there is more of something.
func growth(s *harness.Session) error {
	s.Section("Growth", "Both axes of the plots are logarithmic. A figure is the median of three rounds, with the least and the most.")
	if err := memory.Growth(s); err != nil {
		return err
	}
	return overredis.Growth(s)
}
