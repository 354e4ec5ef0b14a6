package main

import (
	"context"
	"fmt"
	"time"

	"authguard/limiter"
	"authguard/limiter/breaker"
	"authguard/limiter/memstore"
	"authguard/limiter/redisstore"
)

// openStore opens what keeps the limits: Redis, shared by all processes that
// name it, or this process's memory. close must be called at the end.
func openStore(ctx context.Context, o *options) (store limiter.Store, close func() error, err error) {
	if o.redis == "" {
		return memstore.New(memstore.Config{}), func() error { return nil }, nil
	}
	client, err := redisstore.NewClient(o.redis)
	if err != nil {
		return nil, nil, fmt.Errorf("-redis: %w", err)
	}
	shared, err := redisstore.New(redisstore.Config{Client: client})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := client.Ping(ctx).Err(); err != nil {
		client.Close()
		return nil, nil, fmt.Errorf("-redis: the server does not answer: %w", err)
	}
	warnings, err := shared.Warnings(ctx)
	if err != nil {
		o.log.Warn("the limits' server does not tell how it is set up", "err", err)
	}
	for _, w := range warnings {
		o.log.Warn("the limits' server: " + w)
	}
	guarded, err := breaker.New(breaker.Config{Store: shared})
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return guarded, client.Close, nil
}
