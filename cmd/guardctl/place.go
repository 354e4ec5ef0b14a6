package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"authguard/guard"
	"authguard/guard/adminapi"
	"authguard/limiter/redisstore"
	"authguard/policies"
)

// demoURL is where the demo has its API when it is started without flags.
const demoURL = "http://127.0.0.1:8080/admin"

// redisTimeout bounds a call of Redis. Nobody who logs in waits for it.
const redisTimeout = 5 * time.Second

// place is where the limits are: at an application's API, or in a Redis.
type place struct {
	url, tokenFile                     string
	redis, secretFile, policies, names string
}

func (p *place) flags(fs *flag.FlagSet) {
	fs.StringVar(&p.url, "url", "", "")
	fs.StringVar(&p.tokenFile, "token-file", "", "")
	fs.StringVar(&p.redis, "redis", "", "")
	fs.StringVar(&p.secretFile, "secret-file", "", "")
	fs.StringVar(&p.policies, "policies", "", "")
	fs.StringVar(&p.names, "names", "", "")
}

// check reports flags that do not go together. Where accounts are named, a Redis alone
// does not tell what they are counted by, and a wrong guess would find nothing and say so.
func (p *place) check(account bool) error {
	asked := p.url != "" || p.tokenFile != ""
	direct := p.redis != "" || p.secretFile != "" || p.policies != "" || p.names != ""
	switch {
	case asked && direct:
		return errors.New("-url and -token-file go with an application's API; -redis, -secret-file, -policies and -names with its Redis")
	case p.names != "" && p.names != "folded" && p.names != "opaque" && p.names != "id":
		return fmt.Errorf("-names is %q, want folded, opaque or id", p.names)
	}
	if !asked {
		p.redis = cmp.Or(p.redis, os.Getenv("AUTHGUARD_REDIS"))
	}
	if direct && p.redis == "" {
		return errors.New("-secret-file, -policies and -names need -redis")
	}
	if p.redis != "" && p.secretFile == "" {
		return errors.New("-redis needs -secret-file, the guard's: names are kept under it")
	}
	if p.redis != "" && account && p.names == "" {
		return errors.New("-redis needs -names where an account is named: folded or opaque names, or id if the application has a resolver, whose id is then the account to name")
	}
	return nil
}

// open connects to the place.
func (p *place) open(ctx context.Context) (adminapi.Operator, func(), error) {
	if p.redis != "" {
		return p.openRedis()
	}
	token := []byte(os.Getenv("AUTHGUARD_TOKEN"))
	if p.tokenFile != "" {
		var err error
		if token, err = os.ReadFile(p.tokenFile); err != nil {
			return nil, nil, fmt.Errorf("-token-file: %w", err)
		}
	}
	if token = bytes.TrimSpace(token); len(token) == 0 {
		return nil, nil, errors.New("no token: name its file with -token-file, or put it into AUTHGUARD_TOKEN")
	}
	client, err := adminapi.NewClient(cmp.Or(p.url, os.Getenv("AUTHGUARD_URL"), demoURL), string(token))
	return client, func() {}, err
}

func (p *place) openRedis() (adminapi.Operator, func(), error) {
	secret, err := os.ReadFile(p.secretFile)
	if err != nil {
		return nil, nil, fmt.Errorf("-secret-file: %w", err)
	}
	var own policies.File
	if p.policies != "" {
		if own, err = policies.LoadFile(p.policies); err != nil {
			return nil, nil, err
		}
	}
	limits := policies.Override(policies.Default(), own.Policies)
	client, err := redisstore.NewClient(p.redis)
	if err != nil {
		return nil, nil, fmt.Errorf("-redis: %w", err)
	}
	store, err := redisstore.New(redisstore.Config{Client: client, Timeout: redisTimeout})
	if err != nil {
		client.Close()
		return nil, nil, fmt.Errorf("-redis: %w", err)
	}
	config := guard.Config{Store: store, Secret: bytes.TrimSpace(secret), Policies: limits, Lists: own.Lists, Opaque: p.names == "opaque" || p.names == "id"}
	if p.names == "id" {
		config.Resolve = func(_ context.Context, id string) (guard.Account, error) { return guard.Account{ID: id}, nil }
	}
	g, err := guard.New(config)
	if err != nil {
		client.Close()
		return nil, nil, err
	}
	return adminapi.Of(g), func() { client.Close() }, nil
}
