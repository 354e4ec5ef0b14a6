// Command chi is a login and an API with keys, guarded, with the router chi:
//
//	go run ./chi
package main
