//go:build race

package main

// raced says that the race detector slows these tests down tenfold.
const raced = true
