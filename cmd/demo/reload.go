package main

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"authguard/authdemo"
	"authguard/guard"
)

// reloadOnHangup has the policies and lists read again whenever the program is sent SIGHUP,
// until stop is called. A file with errors, each of which is logged with its place,
// changes nothing.
func reloadOnHangup(o *options, svc *authdemo.Service) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range hangups {
			reload(o, svc)
		}
	}()
	return func() {
		signal.Stop(hangups)
		close(hangups)
		<-done
	}
}

func reload(o *options, svc *authdemo.Service) {
	err := svc.Reload(func() ([]guard.Policy, guard.Lists, error) {
		return loadLimits(o.policies)
	})
	if err == nil {
		o.log.Info("policies and lists reloaded", "file", o.policies)
		return
	}
	for _, e := range each(err) {
		o.log.Error("policies not reloaded; those from before stay in force", "err", e)
	}
}

// each are the errors that err joins: of a file, each line's.
func each(err error) []error {
	var joined interface{ Unwrap() []error }
	if errors.As(err, &joined) {
		return joined.Unwrap()
	}
	return []error{err}
}
