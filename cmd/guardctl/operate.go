package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"authguard/guard"
	"authguard/guard/adminapi"
)

const operatorUsage = `
Those between inspect and unblock ask a running application:
  -url URL            of its API; or AUTHGUARD_URL; default http://127.0.0.1:8080/admin, the demo's
  -token-file FILE    with the operators' token; or the token itself in AUTHGUARD_TOKEN
or the Redis that it keeps its limits in:
  -redis URL          or AUTHGUARD_REDIS: redis://, rediss://, redis+sentinel://, redis+cluster://
  -secret-file FILE   with the guard's secret
  -policies FILE      of the application, in place of the presets
  -names KIND         where an account is named, what it is: a folded name, an opaque name, or the id
                      that the application's resolver finds (the demo has one); nothing else is found
They take also
  -ip ADDRESS         inspect, block, unblock: the client's address
  -device COOKIE      inspect: the value of a device cookie, to ask for a known device
  -for DURATION       block: 30m, 36h, 7d
  -until TIME         block: such as 2026-12-31T18:00:00Z
  -n NUMBER           list: how many at most (100)
  -json               for programs
`

// request is an operator's command.
type request struct {
	name     string
	args     []string
	at       place
	ip       netip.Addr
	device   string
	duration time.Duration
	most     int
	json     bool
}

// operate carries out a command of an operator.
func operate(ctx context.Context, name string, args []string, stdout io.Writer) error {
	r, err := parseRequest(name, args)
	if err != nil {
		return usageError(name + ": " + err.Error())
	}
	operator, closeIt, err := r.at.open(ctx)
	if err != nil {
		return err
	}
	defer closeIt()
	switch name {
	case "inspect":
		return r.inspect(ctx, operator, stdout)
	case "list":
		return r.list(ctx, operator, stdout)
	}
	return r.change(ctx, operator, stdout)
}

// parseRequest reads flags and arguments in any order.
func parseRequest(name string, args []string) (*request, error) {
	r := &request{name: name}
	fs := flag.NewFlagSet(name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	r.at.flags(fs)
	fs.BoolVar(&r.json, "json", false, "")
	var until time.Time
	switch name {
	case "list":
		fs.IntVar(&r.most, "n", 100, "")
	case "block":
		fs.Func("for", "", func(s string) (err error) { r.duration, err = parseDuration(s); return err })
		fs.Func("until", "", func(s string) (err error) { until, err = time.Parse(time.RFC3339, s); return err })
	case "inspect":
		fs.StringVar(&r.device, "device", "", "")
	}
	if name == "inspect" || name == "block" || name == "unblock" {
		fs.Func("ip", "", func(s string) (err error) { r.ip, err = netip.ParseAddr(s); return err })
	}
	for rest := args; ; {
		if err := fs.Parse(rest); err != nil {
			return nil, err
		}
		if fs.NArg() == 0 {
			break
		}
		r.args, rest = append(r.args, fs.Arg(0)), fs.Args()[1:]
	}
	if !until.IsZero() {
		if r.duration != 0 {
			return nil, errors.New("-for and -until exclude each other")
		}
		r.duration = time.Until(until).Round(time.Second)
	}
	return r, cmp.Or(r.check(), r.at.check(r.namesAccount()))
}

// namesAccount reports that one of the arguments is an account.
func (r *request) namesAccount() bool {
	return len(r.args) > 1 || len(r.args) == 1 && r.name != "inspect"
}

// check reports which arguments are missing or too many.
func (r *request) check() error {
	accounts := len(r.args)
	switch r.name {
	case "list":
		if accounts > 0 {
			return fmt.Errorf("unexpected argument %q", r.args[0])
		}
		if r.most < 1 {
			return fmt.Errorf("-n is %d, want at least 1", r.most)
		}
		return nil
	case "inspect":
		if accounts == 0 {
			return errors.New("want an action, such as login, and an account or -ip")
		}
		if accounts > 2 {
			return fmt.Errorf("unexpected argument %q", r.args[2])
		}
		if accounts == 1 && !r.ip.IsValid() {
			return errors.New("want an account, or -ip, to ask about")
		}
		return nil
	case "unlock":
		if accounts == 0 {
			return errors.New("want an account")
		}
		return nil
	}
	if accounts > 1 {
		return fmt.Errorf("unexpected argument %q", r.args[1])
	}
	if (accounts == 1) == r.ip.IsValid() {
		return errors.New("want an account or -ip, one of them")
	}
	if r.name == "block" && (r.duration < time.Second || r.duration > guard.MaxBlock) {
		return fmt.Errorf("want -for or -until, of 1s to %dd from now", guard.MaxBlock/(24*time.Hour))
	}
	return nil
}

// parseDuration reads what time.ParseDuration does, and days.
func parseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("want for instance 30m, 36h or 7d")
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("want for instance 30m, 36h or 7d")
	}
	return d, nil
}

// change unlocks, blocks or unblocks.
func (r *request) change(ctx context.Context, o adminapi.Operator, stdout io.Writer) error {
	who := guard.Subject{IP: r.ip}
	name := r.ip.String()
	if len(r.args) > 0 {
		who.Account, name = r.args[0], r.args[0]
	}
	said := "unblocked " + shown(name)
	var err error
	switch r.name {
	case "unlock":
		said = "unlocked " + shown(name)
		if err = o.Unlock(ctx, who.Account, r.args[1:]...); len(r.args) > 1 {
			said += " for " + strings.Join(r.args[1:], ", ")
		}
	case "block":
		said = fmt.Sprintf("blocked %s for %s; of two blocks the longer one stands", shown(name), span(r.duration))
		err = o.Block(ctx, who, r.duration)
	case "unblock":
		err = o.Unblock(ctx, who)
	}
	if err != nil {
		return err
	}
	if r.json {
		return encode(stdout, map[string]string{"done": r.name + "ed"})
	}
	_, err = fmt.Fprintln(stdout, said)
	return err
}

func encode(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
