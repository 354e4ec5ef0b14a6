// Package memory measures limits in memory: ours, its peers, and a flat table
// that is the floor of what any keyed limiter does.
//
// ours.go, peers.go and floor.go make the contenders; hot.go, million.go, batch.go
// and login.go ask them.
package memory
