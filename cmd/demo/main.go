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
	"syscall"

	"authguard/authdemo"
	"authguard/guard"
	"authguard/policies"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // so that a second signal ends the program at once
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
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
	limits := policies.Default()
	if o.policies != "" {
		own, err := policies.Load(o.policies)
		if err != nil {
			return err
		}
		limits = policies.Override(limits, own)
	}
	ln, err := net.Listen("tcp", o.addr)
	if err != nil {
		return err
	}
	defer ln.Close() // does nothing once it was served
	development := o.publicURL == nil && isLoopback(ln.Addr())
	if !development {
		return errNoMail
	}
	secret, err := loadSecret(o.secretFile)
	if err != nil {
		return err
	}
	store, closeStore, err := openStore(ctx, o)
	if err != nil {
		return err
	}
	defer closeStore()
	svc, err := authdemo.New(ctx, authdemo.Config{
		DB:             o.db,
		Store:          store,
		Secret:         secret,
		Policies:       limits,
		PublicURL:      o.publicURL,
		Development:    development,
		TrustedProxies: o.trustedProxies,
		Log:            o.log,
	})
	if err != nil {
		return err
	}
	printBanner(stdout, ln.Addr(), o, limits)
	return serve(ctx, ln, svc, o.log)
}

func isLoopback(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && tcp.IP.IsLoopback()
}

func printBanner(w io.Writer, addr net.Addr, o *options, limits []guard.Policy) {
	fmt.Fprintf(w, banner, "http://"+addr.String(), authdemo.DemoEmail, authdemo.DemoPassword, o.db, policies.Format(limits))
}

const banner = `The authguard demo listens on %[1]s, in development mode: nothing is mailed,
and this machine alone reaches it. Accounts are kept in %[4]s.

In a browser:   %[1]s/            account %[2]s, password "%[3]s"
                %[1]s/dev/outbox  the mails that would have been sent

Log in:
  curl -i -c jar %[1]s/login --json '{"email":"%[2]s","password":"%[3]s"}'
Guess, until the sixth time is refused:
  for i in 1 2 3 4 5 6; do curl -i %[1]s/login --json '{"email":"%[2]s","password":"guess '$i'"}'; done
Lift that by a reset link, found in the outbox:
  curl -i %[1]s/password-reset --json '{"email":"%[2]s"}'
  curl -H 'Accept: application/json' %[1]s/dev/outbox
Make an API key, logged in, and use it:
  curl -b jar -X POST %[1]s/api/keys
  curl -i -H 'Authorization: Bearer KEY' %[1]s/api/quote
An export costs 20 calls, which only a key of the paid tier can have:
  curl -b jar %[1]s/api/keys --json '{"tier":"pro"}'
  curl -i -H 'Authorization: Bearer KEY' %[1]s/api/export

The limits in force:

%[5]s`
