// Package memstore keeps limits in the memory of one process: the store for a
// single server, for tests, and for what a shared store falls back on.
//
// It is bounded in bytes, whatever names an attacker invents, needs nothing to
// be started or closed, and has no goroutine: each write sweeps a little.
//
// Keys are kept as keyed 96-bit hashes only. States of up to 40 bytes (all laws
// but logs of more than five admissions or two members) lie in flat tables
// without pointers, so a million keys cost the garbage collector nothing.
package memstore
