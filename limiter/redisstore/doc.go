// Package redisstore keeps limits in Redis, shared by all the processes of an
// application: one server, a primary watched by Sentinel, or a Redis Cluster.
//
//	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:6379", ContextTimeoutEnabled: true})
//	store, err := redisstore.New(redisstore.Config{Client: client})
//
// A check is one EVALSHA, whatever the number of its limits: a script reads all
// its keys, decides by the laws' twins in Lua and the server's clock, and writes
// all of them or none. Checks that come while one is under way are gathered into
// the next script, each decided as if it were alone. Nothing is ever sent twice
// that may have been executed: when a reply is lost, the charge stands.
//
// On a cluster a check is one EVALSHA for each slot of its keys, and takes the time
// of one round trip: each node gets one message, all at once. Keys that share a
// {hash tag} share a slot and are decided together. Where slots disagree, what the
// others were charged is given back before Take returns: a refused attempt may hold
// a unit too much for one round trip (until it ages out, if the process dies there
// or the node is lost), but never one too few is counted. Decisions of different
// nodes have each its own At.
//
// A key is one string in the law's own bytes, with a TTL that is never shorter
// than the law needs.
//
// What a refund or Forget sets free is published on the channel ag:released, for
// package denycache ([Store.Listen]).
package redisstore
