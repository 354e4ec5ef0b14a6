// Command nethttp is a login and an API with keys, guarded, with net/http alone:
//
//	go run ./nethttp
package main
