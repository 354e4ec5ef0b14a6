// Package clients has no code, only tests: HTTP clients, parsers and a limiter that
// other people wrote, against the demo service and an edge. `make test-clients`
// runs them, and docs/clients.md has what they print.
//
// It is a module of its own, so that none of these becomes a dependency of the
// project, and a package of npm, whose scripts are in js.
package clients
