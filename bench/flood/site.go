package flood

import (
	"context"
	"errors"
	"net/netip"
	"runtime"
	"sync/atomic"
	"time"

	"authguard/authdemo/password"
	"authguard/bench/server"
	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/memstore"
	"authguard/limiter/redisstore"
	"authguard/policies"
)

// A site has a login as package authdemo's: the guard, a gate before the password
// and argon2id.
type site struct {
	guard  *guard.Guard // nil: the gate alone
	gate   *password.Gate
	hasher *password.Hasher
	hash   string // of everybody's password

	degraded atomic.Int64 // attempts decided without the store, which was too slow
}

// Observe implements guard.Observer.
func (s *site) Observe(_ context.Context, e guard.Event) {
	if e.Kind == guard.Degraded {
		s.degraded.Add(1)
	}
}

const secret = "correct horse battery staple"

func newSite(store limiter.Store) (*site, error) {
	gate, err := password.NewGate(password.GateConfig{Slots: runtime.GOMAXPROCS(0), Waiting: 64, PerAddress: 32, MaxWait: 2 * time.Second})
	if err != nil {
		return nil, err
	}
	hasher, err := password.NewHasher(password.Default())
	if err != nil {
		return nil, err
	}
	s := &site{gate: gate, hasher: hasher, hash: hasher.Hash(secret)}
	if store == nil {
		return s, nil
	}
	s.guard, err = guard.New(guard.Config{Store: store, Secret: []byte("of the benchmark"), Policies: policies.Default(), Observer: s})
	return s, err
}

// login compares a password.
func (s *site) login(ctx context.Context, account string, addr netip.Addr, typed string) (bool, error) {
	verify := func(ctx context.Context, _ *guard.Pass) (bool, error) {
		leave, err := s.gate.Enter(ctx, password.Client{Addr: addr})
		if errors.Is(err, password.ErrFull) {
			return false, guard.ErrBusy
		}
		if err != nil {
			return false, err
		}
		defer leave()
		return s.hasher.Verify(typed, s.hash)
	}
	if s.guard == nil {
		return verify(ctx, nil)
	}
	return s.guard.Do(ctx, guard.Attempt{Action: "login", Account: account, IP: addr}, verify)
}

// A maker opens a site.
type maker struct {
	name string
	make func() (s *site, closing func(), err error)
}

var inMemory = maker{"**guarded**, in memory", func() (*site, func(), error) {
	s, err := newSite(memstore.New(memstore.Config{}))
	return s, func() {}, err
}}

var gateAlone = maker{"not guarded: the gate alone", func() (*site, func(), error) {
	s, err := newSite(nil)
	return s, func() {}, err
}}

func overRedis(srv *server.Server) maker {
	return maker{"**guarded**, over Redis", func() (*site, func(), error) {
		if err := srv.Flush(); err != nil {
			return nil, nil, err
		}
		client, err := srv.Client(0)
		if err != nil {
			return nil, nil, err
		}
		store, err := redisstore.New(redisstore.Config{Client: client})
		if err != nil {
			return nil, nil, err
		}
		s, err := newSite(store)
		return s, func() { client.Close() }, err
	}}
}
