package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"authguard/authdemo"
)

// timeouts bound how long serve waits.
type timeouts struct {
	read  time.Duration // for a request to be sent
	drain time.Duration // at the end, for requests under way to be answered
	close time.Duration // and then for mails under way
}

// A request that began just before the end may take all of read to arrive and
// then some to be answered, so drain is longer.
var usualTimeouts = timeouts{read: 10 * time.Second, drain: 15 * time.Second, close: 5 * time.Second}

// serve serves until ctx ends; then it lets requests and mails end.
func serve(ctx context.Context, ln net.Listener, svc *authdemo.Service, log *slog.Logger, wait timeouts) error {
	srv := &http.Server{
		Handler:           svc,
		ReadHeaderTimeout: wait.read / 2,
		ReadTimeout:       wait.read,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(ln) }()

	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		log.Info("draining")
	}
	return errors.Join(err, drain(ctx, srv, wait.drain), closeService(ctx, svc, wait.close))
}

// drain lets requests under way end, and cuts off those that do not.
func drain(ctx context.Context, srv *http.Server, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		srv.Close()
		return fmt.Errorf("requests did not end within %v and were cut off", wait)
	}
	return err
}

func closeService(ctx context.Context, svc *authdemo.Service, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	return svc.Close(ctx)
}
