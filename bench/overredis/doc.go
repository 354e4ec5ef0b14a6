// Package overredis measures checks over a Redis server: ours, go-redis/redis_rate,
// the textbook's sorted set, and the floors of calls that decide nothing.
//
// load.go drives so many callers for a while; ours.go and peers.go are what they
// call; checks.go has the experiments of speed and memory.go those of memory.
package overredis
