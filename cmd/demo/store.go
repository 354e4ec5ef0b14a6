package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/breaker"
	"authguard/limiter/memstore"
	"authguard/limiter/redisstore"
)

// openStore opens what keeps the limits: Redis, shared by all processes that
// name it, or this process's memory. close must be called at the end.
func openStore(ctx context.Context, o *options, secret []byte) (store limiter.Store, close func() error, err error) {
	if o.redis == "" {
		if o.instances > 1 {
			o.log.Warn("limits are kept in this process's memory, so each of the instances admits the whole of every limit; use -redis", "instances", o.instances)
		}
		return memstore.New(memstore.Config{}), func() error { return nil }, nil
	}
	client, err := redisstore.NewClient(o.redis)
	if err != nil {
		return nil, nil, fmt.Errorf("-redis: %w", err)
	}
	defer func() {
		if err != nil {
			client.Close()
		}
	}()
	shared, err := redisstore.New(redisstore.Config{Client: client})
	if err != nil {
		return nil, nil, err
	}
	if err := meet(ctx, o.log, shared, secret); err != nil {
		return nil, nil, fmt.Errorf("-redis: %w", err)
	}
	store, err = breaker.New(breaker.Config{Store: shared})
	return store, client.Close, err
}

// meet says what there is to say at the start about a shared store. A server that
// does not answer now is no error: an outage must not keep processes from starting.
func meet(ctx context.Context, log *slog.Logger, shared *redisstore.Store, secret []byte) error {
	own, err := guard.Fingerprint(secret)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	last, err := shared.Mark(ctx, own)
	var refusal redis.Error
	switch {
	case errors.As(err, &refusal):
		return err // for instance a wrong password, which no waiting heals
	case err != nil:
		log.Error("the limits' server does not answer; each rule decides by its on_outage until it does", "err", err)
		return nil
	case last != "" && last != own:
		log.Error("processes with another secret share this server: their counts are apart from ours, so every limit can be used up once more; "+
			"give all the same -secret-file, or ignore this once after a change of the secret", "ours", own, "theirs", last)
	}
	warnings, err := shared.Warnings(ctx)
	if err != nil {
		log.Warn("the limits' server does not tell how it is set up", "err", err)
	}
	for _, w := range warnings {
		log.Warn("the limits' server: " + w)
	}
	return nil
}
