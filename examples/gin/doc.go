// Command gin is a login and an API with keys, guarded, with the framework gin:
//
//	go run ./gin
package main
