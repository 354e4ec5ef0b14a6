package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/breaker"
	"authguard/limiter/denycache"
	"authguard/limiter/memcachestore"
	"authguard/limiter/redisstore"
)

// opened is the store of limits, and how it ends.
type opened struct {
	limiter.Store
	close func()
}

// openStore opens what keeps the limits: Redis or Memcached, shared by all processes
// that name it, or this process's memory.
func openStore(ctx context.Context, o *options, secret, previous []byte) (*opened, error) {
	switch {
	case o.redis != "":
		return openRedis(ctx, o, secret, previous)
	case len(o.memcached) > 0:
		return openMemcached(ctx, o, secret, previous)
	}
	if o.instances > 1 {
		o.log.Warn("limits are kept in this process's memory, so each of the instances admits the whole of every limit; use -redis", "instances", o.instances)
	}
	return openMemory(beside(o.db, ".limits"), o.log)
}

func openRedis(ctx context.Context, o *options, secret, previous []byte) (*opened, error) {
	client, err := redisstore.NewClient(o.redis)
	if err != nil {
		return nil, fmt.Errorf("-redis: %w", err)
	}
	store, err := overRedis(ctx, o, client, secret, previous)
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("-redis: %w", err)
	}
	return store, nil
}

// overRedis puts a breaker before Redis, and before that a memory of what it denies.
func overRedis(ctx context.Context, o *options, client redis.UniversalClient, secret, previous []byte) (*opened, error) {
	shared, err := redisstore.New(redisstore.Config{Client: client})
	if err != nil {
		return nil, err
	}
	if err := meet(ctx, o.log, shared.Mark, secret, previous); err != nil {
		return nil, err
	}
	warn(ctx, o.log, shared)
	broken, err := breaker.New(breaker.Config{Store: shared})
	if err != nil {
		return nil, err
	}
	cache, err := denycache.New(denycache.Config{
		Store: broken, Channel: shared,
		Broken: func(err error) {
			o.log.Debug("nobody tells what other processes set free; all is asked of the limits' server", "err", err)
		},
	})
	if err != nil {
		return nil, err
	}
	listening, stop := context.WithCancel(context.WithoutCancel(ctx))
	var listener sync.WaitGroup
	listener.Go(func() { cache.Run(listening) })
	return &opened{cache, func() { stop(); listener.Wait(); client.Close() }}, nil
}

func openMemcached(ctx context.Context, o *options, secret, previous []byte) (*opened, error) {
	shared, err := memcachestore.New(memcachestore.Config{Addrs: o.memcached})
	if err != nil {
		return nil, fmt.Errorf("-memcached: %w", err)
	}
	if err := meet(ctx, o.log, shared.Mark, secret, previous); err != nil {
		return nil, fmt.Errorf("-memcached: %w", err)
	}
	o.log.Warn("the limits' server is a cache: what it evicts, and all of it when it restarts, is forgotten, so limits can be used up once more")
	store, err := breaker.New(breaker.Config{Store: shared})
	return &opened{store, shared.Close}, err
}

// startTime bounds what is asked of a shared store at the start.
const startTime = 5 * time.Second

// meet finds out whether a shared store answers, and whether others who share it
// have another secret, which the previous one is not: under it counts are shared. A server that does not answer now is no error: an outage must
// not keep processes from starting.
func meet(ctx context.Context, log *slog.Logger, mark func(context.Context, string) (string, error), secret, previous []byte) error {
	own, err := guard.Fingerprint(secret)
	if err != nil {
		return err
	}
	before := ""
	if previous != nil {
		if before, err = guard.Fingerprint(previous); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	last, err := mark(ctx, own)
	var refusal redis.Error
	switch {
	case errors.As(err, &refusal):
		return err // for instance a wrong password, which no waiting heals
	case err != nil:
		log.Error("the limits' server does not answer; each rule decides by its on_outage until it does", "err", err)
	case last != "" && last == before:
		log.Info("the secret is being replaced on this server: attempts are counted under both", "ours", own, "previous", before)
	case last != "" && last != own:
		log.Error("processes with another secret share this server: their counts are apart from ours, so every limit can be used up once more; "+
			"give all the same -secret-file, and to replace it the one before as -previous-secret-file", "ours", own, "theirs", last)
	}
	return nil
}

// warn says what about the server's settings sets limits free.
func warn(ctx context.Context, log *slog.Logger, shared *redisstore.Store) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	warnings, err := shared.Warnings(ctx)
	if err != nil {
		log.Warn("the limits' server does not tell how it is set up", "err", err)
	}
	for _, w := range warnings {
		log.Warn("the limits' server: " + w)
	}
}
