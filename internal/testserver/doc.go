// Package testserver starts real servers for tests, on free loopback ports, and
// ends them with the test.
package testserver
