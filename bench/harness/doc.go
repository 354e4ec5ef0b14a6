// Package harness measures things side by side. An [Experiment] names
// contenders; a [Session] runs them in turns (A B C A B C ...), so that whatever
// else the machine does meets all of them alike, and writes a table: the median
// of each figure with its spread, and ratios against named contenders.
//
// A ratio is the median of the ratios of each round, whose two sides were
// measured within seconds of each other; it is steadier than the ratio of two
// medians. A [Goal] bounds a figure or a ratio. A missed goal is said, and stays
// in the table; a contender that answers wrongly ends the session, for nothing
// is worth measuring that is wrong.
package harness
