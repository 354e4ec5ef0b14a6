// Package redisstore keeps limits in Redis, shared by all the processes of an
// application: one server, or a primary watched by Sentinel.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
//	store, err := redisstore.New(redisstore.Config{Client: client})
//
// A check is one EVALSHA, whatever the number of its limits: a script reads all
// its keys, decides by the laws' twins in Lua and the server's clock, and writes
// all of them or none. Checks that come while one is under way are gathered into
// the next script, each decided as if it were alone. Nothing is ever sent twice:
// when a reply is lost, the charge stands.
//
// A key is one string in the law's own bytes, with a TTL that is never shorter
// than the law needs.
package redisstore
