package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"authguard/authdemo"
	"authguard/guard"
	"authguard/policies"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends the program at once
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	os.Exit(report(os.Stderr, err))
}

// Exit statuses.
const (
	statusOK     = 0
	statusFailed = 1
	statusUsage  = 2
)

// report says what went wrong, if anything did, and gives the exit status.
func report(stderr io.Writer, err error) int {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return statusOK
	case errors.As(err, new(usageError)):
		fmt.Fprintf(stderr, "demo: %v\ndemo -h lists the flags.\n", err)
		return statusUsage
	case errors.As(err, new(policyError)):
		// Each error has a line that begins with its place, as editors like it.
		fmt.Fprintf(stderr, "demo:\n%v\n", err)
	default:
		fmt.Fprintf(stderr, "demo: %v\n", err)
	}
	return statusFailed
}

// errNoMail is said before anything is opened or made.
var errNoMail = errors.New("outside development mode the service needs a mail transport, which this version lacks: " +
	"run it without -public-url and with an -addr on loopback")

// run serves until ctx ends, and then drains.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
	o, err := parseOptions(args, getenv, stderr)
	if err != nil {
		return err
	}
	limits, lists, err := loadLimits(o.policies)
	if err != nil {
		return err
	}
	addr, err := net.ResolveTCPAddr("tcp", o.addr)
	if err != nil {
		return fmt.Errorf("-addr: %w", err)
	}
	if o.publicURL != nil || !addr.IP.IsLoopback() {
		return errNoMail
	}
	ln, err := net.ListenTCP("tcp", addr)
	if err != nil {
		return fmt.Errorf("%w; choose another with -addr", err)
	}
	defer ln.Close() // does nothing once it was served
	if err := os.MkdirAll(filepath.Dir(o.db), 0o700); err != nil {
		return fmt.Errorf("no folder for the database, name another place with -db: %w", err)
	}
	secret, err := loadSecret(o.secretFile, o.log)
	if err != nil {
		return err
	}
	previous, err := loadPrevious(o.previousSecret, o.log)
	if err != nil {
		return err
	}
	store, err := openStore(ctx, o, secret, previous)
	if err != nil {
		return err
	}
	defer store.close()
	recorder, stop, err := record(o)
	if err != nil {
		return err
	}
	defer stop()
	svc, err := authdemo.New(ctx, authdemo.Config{
		DB:             o.db,
		Store:          store.Store,
		Instances:      o.instances,
		Secret:         secret,
		PreviousSecret: previous,
		Policies:       limits,
		Lists:          lists,
		Development:    true, // which the address allows, as was found above
		TrustedProxies: o.trustedProxies,
		AdminToken:     o.adminToken,
		Recorder:       recorder,
		Log:            o.log,
	})
	if err != nil {
		return err
	}
	defer reloadOnHangup(o, svc)()
	printBanner(stdout, ln.Addr(), o, limits)
	return serve(ctx, ln, svc, o.log, usualTimeouts)
}

func printBanner(w io.Writer, addr net.Addr, o *options, limits []guard.Policy) {
	fmt.Fprintf(w, banner, "http://"+addr.String(), authdemo.DemoEmail, authdemo.DemoPassword, o.db, policies.Format(limits))
}

const banner = `The authguard demo listens on %[1]s, in development mode: nothing is mailed,
and this machine alone reaches it. Accounts are kept in %[4]s;
the one below is as new at every start.

In a browser:   %[1]s/            account %[2]s, password "%[3]s"
                %[1]s/dev/outbox  the mails that would have been sent

Log in:
  curl -i -c jar %[1]s/login --json '{"email":"%[2]s","password":"%[3]s"}'
Make an API key, logged in, and use it:
  curl -b jar -X POST %[1]s/api/keys
  curl -i -H 'Authorization: Bearer KEY' %[1]s/api/quote
An export costs 20 calls, which only a key of the paid tier can have:
  curl -b jar %[1]s/api/keys --json '{"tier":"pro"}'
  curl -i -H 'Authorization: Bearer KEY' %[1]s/api/export
Guess, until the sixth time is refused:
  for i in 1 2 3 4 5 6; do curl -i %[1]s/login --json '{"email":"%[2]s","password":"guess '$i'"}'; done
See what the guard has counted, as Prometheus does:
  curl %[1]s/metrics
Lift that by a new password, whose link is in the outbox:
  curl -i %[1]s/password-reset --json '{"email":"%[2]s"}'
  curl -H 'Accept: application/json' %[1]s/dev/outbox
  curl -i %[1]s/password-reset/confirm --json '{"token":"TOKEN","password":"another good passphrase"}'

The limits in force:

%[5]s`
