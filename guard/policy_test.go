package guard_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

func TestNewRefusesWhatCannotWork(t *testing.T) {
	good := func() guard.Config {
		return guard.Config{Store: memstore.New(memstore.Config{}), Secret: secret, Policies: []guard.Policy{login(accountRule())}}
	}
	rule := func(change func(*guard.Rule)) func(*guard.Config) {
		return func(c *guard.Config) {
			r := accountRule()
			change(&r)
			c.Policies = []guard.Policy{login(r)}
		}
	}
	for want, change := range map[string]func(*guard.Config){
		"guard: Config.Store is nil":                                     func(c *guard.Config) { c.Store = nil },
		"guard: Config.Secret is 15 bytes, want at least 16":             func(c *guard.Config) { c.Secret = secret[:15] },
		"guard: Config.Policies is empty":                                func(c *guard.Config) { c.Policies = nil },
		`guard: two policies for action "login"`:                         func(c *guard.Config) { c.Policies = append(c.Policies, c.Policies[0]) },
		"guard: policy action is empty":                                  func(c *guard.Config) { c.Policies[0].Action = "" },
		`guard: policy action "Login" has 'L', want only a-z, 0-9 and _`: func(c *guard.Config) { c.Policies[0].Action = "Login" },
		"guard: policy login has no rules":                               func(c *guard.Config) { c.Policies[0].Rules = nil },
		`guard: policy login has two rules named "account"`: func(c *guard.Config) {
			c.Policies[0].Rules = append(c.Policies[0].Rules, accountRule())
		},
		"guard: policy login: rule name is 33 bytes, want at most 32":                                                                            rule(func(r *guard.Rule) { r.Name = strings.Repeat("a", 33) }),
		`guard: policy login: rule account: By is "adress", want account, ip, ip/BITS, ip+account, device, api_key, tenant, global or part:NAME`: rule(func(r *guard.Rule) { r.By = "adress" }),
		`guard: policy login: rule account: By is "", want account, ip, ip/BITS, ip+account, device, api_key, tenant, global or part:NAME`:       rule(func(r *guard.Rule) { r.By = "" }),
		`guard: policy login: rule account: By is "ip/24", want an IPv6 prefix of 32 to 128 bits such as ip/48`:                                  rule(func(r *guard.Rule) { r.By = "ip/24" }),
		`guard: policy login: rule account: By is "ip/048", want an IPv6 prefix of 32 to 128 bits such as ip/48`:                                 rule(func(r *guard.Rule) { r.By = "ip/048" }),
		"guard: policy login: rule account: By part is empty":                                                                                    rule(func(r *guard.Rule) { r.By = guard.Part("") }),
		"guard: policy login: rule account has no limits":                                                                                        rule(func(r *guard.Rule) { r.Limits = nil }),
		"guard: policy login: rule account has a nil limit":                                                                                      rule(func(r *guard.Rule) { r.Limits = []limiter.Limit{nil} }),
		"guard: policy login: rule account: limiter: SlidingWindow.Limit is 0, want 1 to 1000000": rule(func(r *guard.Rule) {
			r.Limits = []limiter.Limit{limiter.SlidingWindow{}}
		}),
		"guard: policy login: rule account: Counts is Counts(7), want attempts or failures":               rule(func(r *guard.Rule) { r.Counts = 7 }),
		"guard: policy login: rule account: Effect is Effect(7), want deny, challenge, silent or observe": rule(func(r *guard.Rule) { r.Effect = 7 }),
		"guard: policy login: rule account: counts failures, which a token_bucket cannot: its refund is not exact; use a window": rule(func(r *guard.Rule) {
			r.Limits = []limiter.Limit{limiter.TokenBucket{Capacity: 1, Refill: 1, Per: time.Second}}
		}),
	} {
		c := good()
		change(&c)
		g, err := guard.New(c)
		require.Nil(t, g)
		require.EqualError(t, err, want)
	}
	_, err := guard.New(good())
	require.NoError(t, err)
}

// The guard takes nothing of the configuration by reference.
func TestConfigIsCopied(t *testing.T) {
	p := login(accountRule())
	b := newBench(t, nil, p)
	p.Rules[0].Counts = guard.Attempts
	require.NoError(t, b.requireAdmitted(t, by("bob", here)).Succeed(ctx))
	require.Equal(t, []int64{0}, b.used(t, by("bob", here)))
}
