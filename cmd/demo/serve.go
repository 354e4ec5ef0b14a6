package main

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"time"

	"authguard/authdemo"
)

// drainTimeout is what requests and mails under way have to end in: a bit more
// than the longest that a request may wait for a password's computation.
const drainTimeout = 10 * time.Second

// serve serves until ctx ends; then it lets requests and mails end.
func serve(ctx context.Context, ln net.Listener, svc *authdemo.Service, log *slog.Logger) error {
	srv := &http.Server{
		Handler:           svc,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
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
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	return errors.Join(err, srv.Shutdown(drain), svc.Close(drain))
}
