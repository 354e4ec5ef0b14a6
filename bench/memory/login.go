package memory

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"authguard/bench/harness"
	"authguard/guard"
	"authguard/limiter/memstore"
	"authguard/policies"
)

// login is a whole login with the preset: Check and Succeed.
func (f *family) login() error {
	const ipv4 = "Check and Succeed, IPv4"
	_, err := f.Measure(harness.Experiment{
		Name: "guard: a login by its preset",
		About: "The preset `login`: nine limits of eight rules on account, address and network. Accounts and addresses take turns, 100 logins each, " +
			"which is within all limits. A refused Check is of an account that has failed five times.",
		Metrics: inLoop,
		Contenders: []harness.Contender{
			f.loginsOf(ipv4, func(i int) netip.Addr { return netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)}) }),
			f.loginsOf("Check and Succeed, IPv6", func(i int) netip.Addr {
				return netip.AddrFrom16([16]byte{0: 0x20, 1: 1, 2: 0xd, 3: 0xb8, 4: byte(i >> 8), 5: byte(i), 15: 1})
			}),
			{Name: "Check, refused", Run: f.refusedLogin},
		},
		Goals: []harness.Goal{
			{Of: ipv4, Metric: harness.CPUTime, AtMost: 1000},
			{Of: ipv4, Metric: harness.Allocations, AtMost: 1},
		},
	})
	return err
}

func newGuard() (*guard.Guard, error) {
	preset, err := policies.Preset("login")
	if err != nil {
		return nil, err
	}
	return guard.New(guard.Config{Store: memstore.New(memstore.Config{}), Secret: []byte("of the benchmark"), Policies: preset})
}

func (f *family) loginsOf(row string, addr func(int) netip.Addr) harness.Contender {
	return harness.Contender{Name: row, Run: func() (harness.Sample, error) {
		g, err := newGuard()
		if err != nil {
			return nil, err
		}
		const each = 100
		attempts := make([]guard.Attempt, f.logins/each)
		for i := range attempts {
			attempts[i] = guard.Attempt{Action: "login", Account: fmt.Sprintf("someone%d@example.com", i), IP: addr(i)}
		}
		ctx := context.Background()
		login := func(_, i int) (bool, error) {
			pass, err := g.Check(ctx, attempts[i%len(attempts)])
			if err != nil {
				return false, err
			}
			return true, pass.Succeed(ctx)
		}
		for i := range attempts { // the keys are there
			if _, err := login(0, i); err != nil {
				return nil, err
			}
		}
		return harness.Timed(1, f.logins, f.logins, login)
	}}
}

func (f *family) refusedLogin() (harness.Sample, error) {
	g, err := newGuard()
	if err != nil {
		return nil, err
	}
	a := guard.Attempt{Action: "login", Account: "someone@example.com", IP: netip.MustParseAddr("198.51.100.9")}
	ctx := context.Background()
	return harness.Timed(1, f.logins, 5, func(int, int) (bool, error) {
		pass, err := g.Check(ctx, a)
		var denied *guard.Denied
		if errors.As(err, &denied) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return true, pass.Fail(ctx)
	})
}
