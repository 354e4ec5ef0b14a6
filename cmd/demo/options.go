package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// usageError is an error in how the program was called.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// options are the flags, read and checked.
type options struct {
	addr           string
	db             string
	policies       string
	secretFile     string
	previousSecret string // its file; "" if the secret is not being replaced
	redis          string // URL; "" keeps the limits in memory
	memcached      []string
	instances      int // that share the limits
	trustedProxies []netip.Prefix
	publicURL      *url.URL // nil if not given
	record         string   // folder; "" records nothing
	adminToken     string   // "" if nobody on another machine is an operator
	log            *slog.Logger
}

func parseOptions(args []string, getenv func(string) string, stderr io.Writer) (*options, error) {
	o := &options{log: slog.New(slog.NewTextHandler(stderr, nil))}
	fs := flag.NewFlagSet("demo", flag.ContinueOnError)
	fs.SetOutput(io.Discard) // errors are told once, by whoever gets them
	fs.Usage = func() {}
	fs.StringVar(&o.addr, "addr", "127.0.0.1:8080", "`address` to listen on")
	fs.StringVar(&o.db, "db", "", "`path` of the SQLite database (default in the user's cache folder)")
	fs.StringVar(&o.policies, "policies", "", "YAML `file` of limits and lists; it replaces the presets of the actions that it names, and is read again on SIGHUP")
	fs.StringVar(&o.secretFile, "secret-file", "", "`file` of the secret that keys names in the limit store; made when absent (default beside the database)")
	fs.StringVar(&o.previousSecret, "previous-secret-file", "", "`file` of the secret before that of -secret-file, while it is being replaced: what was counted under it still counts")
	fs.StringVar(&o.redis, "redis", "", "`URL` of a Redis that keeps the limits for several processes (redis://, rediss://, redis+sentinel://, redis+cluster://); needs -secret-file")
	fs.Func("memcached", "`host:port`, or several with commas, of a Memcached that keeps the limits for several processes; needs -secret-file", func(s string) error {
		o.memcached = strings.Split(s, ",")
		return nil
	})
	fs.StringVar(&o.record, "record", "", "`folder` of this process alone, in which all attempts are recorded under keyed hashes, for guardctl replay; at most 1 GiB")
	fs.Func("instances", "`number` of processes that share the limits: while their store is down each admits its share (default 1)", o.setInstances)
	fs.Func("trusted-proxies", "comma-separated `prefixes` of the proxies whose X-Forwarded-For is believed", o.setProxies)
	fs.Func("public-url", "`URL` at which browsers reach the service; this version refuses it, since it has no mail transport yet", o.setPublicURL)
	fs.StringVar(&o.adminToken, "admin-token", "", "`token` of operators (Authorization: Bearer), at least 16 bytes: it opens the API of guardctl under /admin, and /metrics to other machines; other users of this machine can read flags, not variables")
	fs.Func("log", "log as `format` json or text (default text)", func(format string) error { return o.setLog(format, stderr) })

	var err error
	fs.VisitAll(func(f *flag.Flag) {
		name := "AUTHDEMO_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		if v := getenv(name); v != "" && err == nil {
			if e := fs.Set(f.Name, v); e != nil {
				err = fmt.Errorf("%s: %w", name, e)
			}
		}
	})
	if err != nil {
		return nil, usageError{err}
	}
	if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(stderr, "The flags of demo:")
		fs.SetOutput(stderr)
		fs.PrintDefaults()
		fmt.Fprint(stderr, environment)
		return nil, err
	} else if err != nil {
		return nil, usageError{err}
	}
	if fs.NArg() > 0 {
		return nil, usageError{fmt.Errorf("unexpected argument %q", fs.Arg(0))}
	}
	return o, o.complete()
}

const environment = `
Each is also an environment variable: -trusted-proxies is
AUTHDEMO_TRUSTED_PROXIES. A flag wins over its variable.
`

// complete fills in the paths that were not given.
func (o *options) complete() error {
	if o.db == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return fmt.Errorf("no place for the database, name one with -db: %w", err)
		}
		o.db = filepath.Join(cache, "authguard", "demo.db")
	}
	switch shared := map[bool]string{true: "-redis", false: "-memcached"}[o.redis != ""]; {
	case o.redis != "" && len(o.memcached) > 0:
		return usageError{errors.New("-redis and -memcached exclude each other: one store keeps the limits")}
	case o.secretFile == "" && (o.redis != "" || len(o.memcached) > 0):
		return usageError{fmt.Errorf("%s needs -secret-file: processes that share limits must share the secret that keys them", shared)}
	}
	if o.secretFile == "" {
		o.secretFile = beside(o.db, ".secret")
	}
	return nil
}

// beside is the file with db's name and another extension.
func beside(db, ext string) string { return strings.TrimSuffix(db, filepath.Ext(db)) + ext }

func (o *options) setInstances(s string) (err error) {
	o.instances, err = strconv.Atoi(s)
	if err != nil || o.instances < 1 {
		return fmt.Errorf("%q, want a number from 1", s)
	}
	return nil
}

// setProxies reads prefixes and single addresses. One that covers everybody
// would let every client choose its own address.
func (o *options) setProxies(list string) error {
	o.trustedProxies = nil
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		p, err := netip.ParsePrefix(item)
		if addr, e := netip.ParseAddr(item); e == nil {
			addr = addr.Unmap().WithZone("")
			p, err = addr.Prefix(addr.BitLen())
		}
		if err != nil {
			return fmt.Errorf("%q is no address and no prefix such as 10.0.0.0/8", item)
		}
		if p.Bits() < 8 {
			return fmt.Errorf("%v trusts half the world, who could then choose their own address", p)
		}
		o.trustedProxies = append(o.trustedProxies, p.Masked())
	}
	return nil
}

func (o *options) setPublicURL(s string) (err error) {
	o.publicURL, err = url.Parse(s)
	return err
}

func (o *options) setLog(format string, stderr io.Writer) error {
	switch format {
	case "json":
		o.log = slog.New(slog.NewJSONHandler(stderr, nil))
	case "text":
		o.log = slog.New(slog.NewTextHandler(stderr, nil))
	default:
		return fmt.Errorf("%q, want json or text", format)
	}
	return nil
}
