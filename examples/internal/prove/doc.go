// Package prove holds each example, over a real HTTP server, to the same promises.
package prove
