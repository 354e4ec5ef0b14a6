// Package web measures limits before an HTTP handler: ours and its peers behind
// chi, without a network and over loopback.
//
// handlers.go makes the handlers, direct.go calls them, loopback.go has them called
// over connections.
package web
