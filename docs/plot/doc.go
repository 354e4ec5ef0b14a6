// Command plot keeps docs/algorithms.md true. It asks the laws of package
// limiter themselves, in virtual time, and writes down what they answer:
//
//	go run ./docs/plot
//
// from the root of the module draws the plots, docs/img/*.svg, and fills in the
// answers of the tables in docs/algorithms.md that walk one key through time.
// The result is the same in each run; the test fails when what is committed
// differs from it.
//
// Each plot is a file with its simulation and its drawing; lanes.go draws the
// plots that have a row for each law, walk.go fills in the tables.
package main
