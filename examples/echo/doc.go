// Command echo is a login and an API with keys, guarded, with the framework echo:
//
//	go run ./echo
package main
