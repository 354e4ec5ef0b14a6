package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"authguard/guard"
	"authguard/limiter/redisstore"
	"authguard/policies"
)

// eraseOptions say whose counts are erased, and where they are.
type eraseOptions struct {
	redis    string
	secrets  [][]byte // the present one and, if there is one, the one before
	policies [][]guard.Policy
	account  string
	id       string
}

// erase is the command of that name.
func erase(ctx context.Context, args []string, stdout io.Writer) error {
	o, err := parseErase(args)
	if err != nil {
		return err
	}
	client, err := redisstore.NewClient(o.redis)
	if err != nil {
		return fmt.Errorf("-redis: %w", err)
	}
	defer client.Close()
	store, err := redisstore.New(redisstore.Config{Client: client, Timeout: 5 * time.Second})
	if err != nil {
		return err
	}
	if err := checkMark(ctx, store, o.secrets); err != nil {
		return err
	}
	held, blocked := 0, false
	for _, ps := range o.policies {
		for _, id := range slices.Compact([]string{"", o.id}) {
			n, b, err := o.eraseFrom(ctx, store, ps, id)
			if err != nil {
				return err
			}
			held, blocked = held+n, blocked || b
		}
	}
	said := fmt.Sprintf("Erased. Of the account's limits %d had counted something.\n", held)
	if blocked {
		said += "It is blocked by an operator, and stays so with its sealed name until that ends: see guardctl unblock.\n"
	}
	_, err = io.WriteString(stdout, said)
	return err
}

func parseErase(args []string) (o eraseOptions, err error) {
	fs := flag.NewFlagSet("erase", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	fs.StringVar(&o.redis, "redis", "", "")
	fs.StringVar(&o.id, "id", "", "")
	secret := fs.String("secret-file", "", "")
	previous := fs.String("previous-secret-file", "", "")
	file := fs.String("policies", "", "")
	if err := fs.Parse(args); err != nil {
		return o, usageError("erase: " + err.Error())
	}
	switch {
	case o.redis == "":
		return o, usageError("erase needs -redis")
	case *secret == "":
		return o, usageError("erase needs -secret-file")
	case fs.NArg() != 1:
		return o, usageError(fmt.Sprintf("erase takes one account, not %d", fs.NArg()))
	}
	o.account = fs.Arg(0)
	for _, path := range []string{*secret, *previous} {
		if path == "" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return o, err
		}
		o.secrets = append(o.secrets, bytes.TrimSpace(text))
	}
	// Also what was counted by presets that a file has replaced.
	o.policies = [][]guard.Policy{policies.Default()}
	if *file != "" {
		own, err := policies.Load(*file)
		if err != nil {
			return o, err
		}
		o.policies = append(o.policies, policies.Override(policies.Default(), own))
	}
	return o, nil
}

// checkMark reports that the server's counts are under another secret, so that
// nothing of any account would be found.
func checkMark(ctx context.Context, store *redisstore.Store, secrets [][]byte) error {
	var own []string
	for _, secret := range secrets {
		f, err := guard.Fingerprint(secret)
		if err != nil {
			return err
		}
		own = append(own, f)
	}
	last, err := store.Marked(ctx)
	if err != nil {
		return err
	}
	if last != "" && !slices.Contains(own, last) {
		return fmt.Errorf("the processes that share this server have another secret (%s) than is given (%s), so nothing of the account would be found", last, strings.Join(own, ", "))
	}
	return nil
}

// eraseFrom erases what policies have counted of the account under one of its ids, and
// tells how many limits that were, and whether an operator has blocked it, which stays.
func (o eraseOptions) eraseFrom(ctx context.Context, store *redisstore.Store, ps []guard.Policy, id string) (held int, blocked bool, err error) {
	c := guard.Config{Store: store, Secret: o.secrets[0], Policies: ps}
	if len(o.secrets) > 1 {
		c.PreviousSecret = o.secrets[1]
	}
	if id != "" {
		c.Resolve = func(context.Context, string) (guard.Account, error) { return guard.Account{ID: id}, nil }
	}
	g, err := guard.New(c)
	if err != nil {
		return 0, false, err
	}
	for _, p := range ps {
		all, err := g.Inspect(ctx, guard.Attempt{Action: p.Action, Account: o.account})
		if err != nil && !errors.Is(err, guard.ErrMissing) { // of an action without rules by account
			return 0, false, err
		}
		for _, s := range all {
			switch {
			case s.By != guard.ByAccount || s.Used() == 0:
			case s.Rule == guard.BlockedRule:
				blocked = true
			default:
				held++
			}
		}
	}
	return held, blocked, g.Erase(ctx, o.account)
}
