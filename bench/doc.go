// Command bench measures authguard beside its peers and floors:
//
//	make bench          everything, in about ten minutes; writes docs/benchmarks.md
//	make bench-redis    the part over Redis
//	make bench-timing   whether the demo's answers tell by their time which accounts there are
//	make bench-quick    as little of everything as shows that all answers are right
//
// It is a module of its own, so that no peer becomes a dependency of authguard.
// Package harness has the method; each family of measurements is a package:
// overredis, memory, web, flood, timing and growth. The families that need a server
// start a redis-server and end it.
package main
