package authguard_test

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"authguard/authdemo"
	"authguard/guard"
	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/redisstore"
	"authguard/policies"
)

// proxied is a service behind a proxy on this machine, so that a test may come
// from any address.
func proxied(c *authdemo.Config) {
	c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
}

// from sends a body as the proxy would, in the name of a chain of addresses.
func (s *service) from(chain, path, contentType, body string) answer {
	s.Helper()
	r, err := http.NewRequest("POST", s.url+path, strings.NewReader(body))
	require.NoError(s, err)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("X-Forwarded-For", chain)
	resp, err := http.DefaultClient.Do(r)
	require.NoError(s, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(s, err)
	return answer{resp.StatusCode, resp.Header, string(b)}
}

func (s *service) loginFrom(chain, email, password string) answer {
	s.Helper()
	return s.from(chain, "/login", "application/json", fmt.Sprintf(`{"email":%q,"password":%q}`, email, password))
}

// statuses counts answers by their status.
type statuses map[int]int

func byAddress(n int64) func(*authdemo.Config) {
	return func(c *authdemo.Config) {
		proxied(c)
		c.Policies = policies.Override(c.Policies, []guard.Policy{{Action: "login", Rules: []guard.Rule{{Name: "ip", By: guard.ByIP,
			Limits: []limiter.Limit{limiter.SlidingWindow{Limit: n, Window: 15 * time.Minute}}}}}})
	}
}

// CIP-04, CIP-10, CIP-11, CIP-13: what a client writes before its own address
// neither makes a new client of it nor charges somebody else.
// V6-03, V6-06: an IPv6 network is one client, and IPv4 neighbours are not.
func TestAClientIsWhomTheProxySaw(t *testing.T) {
	tell(t, byAddress(5), func(s *service) {
		for i, before := range []string{"junk-1, ", "9.9.9.9, ", "192.0.2.77, ", "127.0.0.1, ", "192.0.2.77, 192.0.2.77, "} {
			require.Equal(s, 401, s.loginFrom(before+"198.51.100.9", fmt.Sprintf("a%d@example.com", i), wrong).Status)
			require.Equal(s, 401, s.loginFrom(fmt.Sprintf("2001:db8:1:2::%d", i), owner, wrong).Status)
			s.advance(time.Second)
		}
		for _, client := range []string{"198.51.100.9", "2001:db8:1:2:ffff::6"} {
			refused := s.loginFrom(client, owner, wrong)
			require.Equal(s, 429, refused.Status)
			require.Equal(s, 895*time.Second, refused.retryAfter())
		}
		for range 5 {
			require.Equal(s, 401, s.loginFrom("192.0.2.77", "c@example.com", wrong).Status, "the victim has all five")
		}
		require.Equal(s, 401, s.loginFrom("198.51.100.10", owner, wrong).Status)
		require.Equal(s, 401, s.loginFrom("2001:db8:1:3::1", owner, wrong).Status)
	})
}

// MC-06: many accounts from one address, and one account from many addresses.
func TestSprayingAndBotnetsAreStopped(t *testing.T) {
	tell(t, proxied, func(s *service) {
		spraying, botnet := statuses{}, statuses{}
		var last answer
		for i := range 100 {
			last = s.loginFrom("203.0.113.1", fmt.Sprintf("a%d@example.com", i), wrong)
			spraying[last.Status]++
			botnet[s.loginFrom(fmt.Sprintf("192.0.2.%d", i), owner, wrong).Status]++
		}
		require.Equal(s, statuses{401: 10, 429: 90}, spraying)
		require.Equal(s, []string{"login/spraying"}, s.violated(last))
		require.Equal(s, statuses{401: 5, 429: 95}, botnet)
	})
}

// RC-03, RC-04: right passwords of one account at one instant all get in, six times
// as many as the limit: they wait for one another. Over Memcached, where a crowd may
// be told to come again in a second, those within the limit do.
func TestParallelRightPasswordsGetIn(t *testing.T) {
	tell(t, nil, func(s *service) {
		n := 30
		if strings.HasSuffix(s.Name(), "memcached") {
			n = 5
		}
		for range 3 {
			var in atomic.Int64
			var wg sync.WaitGroup
			start := make(chan struct{})
			for range n {
				wg.Go(func() {
					<-start
					if s.login(owner, correct).Status == 200 {
						in.Add(1)
					}
				})
			}
			close(start)
			wg.Wait()
			require.EqualValues(s, n, in.Load())
		}
	})
}

// CF-04: what is configured is what happens, at the number and at the instant
// that the file says, and the refusal names the rule.
func TestTheLimitIsTheOneConfigured(t *testing.T) {
	own, err := policies.Parse("own.yaml", []byte("login: {account: {by: account, limit: 3 per 5m, counts: failures}}"))
	require.NoError(t, err)
	tell(t, func(cfg *authdemo.Config) { cfg.Policies = policies.Override(cfg.Policies, own) }, func(s *service) {
		for range 3 {
			require.Equal(s, 401, s.login(owner, wrong).Status)
		}
		refused := s.login(owner, correct)
		require.Equal(s, 429, refused.Status)
		require.Equal(s, []string{"login/account"}, s.violated(refused))
		require.Equal(s, 5*time.Minute, refused.retryAfter())
		s.advance(5*time.Minute - time.Microsecond)
		require.Equal(s, 429, s.login(owner, correct).Status)
		s.advance(time.Microsecond)
		require.Equal(s, 200, s.login(owner, correct).Status)
	})
}

// HD-02, HD-03: the wait is what is left, in whole seconds, rounded up and never
// 0; waiting so long is enough, and a second less is not.
func TestTheWaitIsWhatIsLeftRoundedUp(t *testing.T) {
	tell(t, nil, func(s *service) {
		for _, c := range []struct{ since, want time.Duration }{
			{890 * time.Second, 10 * time.Second},
			{999 * time.Millisecond, 900 * time.Second},
			{898*time.Second + 500*time.Millisecond, 2 * time.Second},
			{899*time.Second + 800*time.Millisecond, time.Second},
			{900*time.Second - time.Microsecond, time.Second},
		} {
			for range 5 {
				require.Equal(s, 401, s.login(owner, wrong).Status)
			}
			s.advance(c.since)
			refused := s.login(owner, correct)
			require.Equal(s, 429, refused.Status, c.since)
			require.Equal(s, c.want, refused.retryAfter(), c.since)
			if c.want > time.Second {
				s.advance(c.want - time.Second)
				require.Equal(s, 429, s.login(owner, correct).Status, c.since)
				s.advance(time.Second)
			} else {
				s.advance(c.want)
			}
			require.Equal(s, 200, s.login(owner, correct).Status, c.since)
		}
	})
}

// HD-05: nobody who is not refused is told to wait.
func TestNoWaitIsToldWithoutARefusal(t *testing.T) {
	tell(t, nil, func(s *service) {
		for status, a := range map[int]answer{
			200: s.login(owner, correct),
			201: s.post("/register", map[string]string{"email": "new@example.com", "password": "a good password"}),
			202: s.post("/password-reset", map[string]string{"email": owner}),
			400: s.post("/password-reset/confirm", map[string]string{"token": "t", "password": "a good password"}),
			401: s.login(owner, wrong),
			404: s.post("/nothing", nil),
		} {
			require.Equal(s, status, a.Status)
			require.NotContains(s, a.Header, "Retry-After", status)
			for name := range a.Header {
				require.NotContains(s, strings.ToLower(name), "ratelimit", status)
			}
		}
	})
}

// OB-04: whoever reads the whole store, keys and values, finds nothing of what
// was submitted.
func TestTheStoreTellsNothing(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: testserver.Redis(t), ContextTimeoutEnabled: true, ReadTimeout: 30 * time.Second})
	t.Cleanup(func() { client.Close() })
	store, err := redisstore.New(redisstore.Config{Client: client, Timeout: 30 * time.Second})
	require.NoError(t, err)
	g, err := guard.New(guard.Config{Store: store, Secret: []byte(strings.Repeat("secret", 6)), Policies: policies.Default()})
	require.NoError(t, err)
	for _, action := range []string{"login", "reauth", "password_reset", "signup", "api", "admin"} {
		_, err := g.Check(t.Context(), guard.Attempt{
			Action: action, Account: "someone@example.com", APIKey: "ag_someones_key", IP: netip.MustParseAddr("198.51.100.9")})
		require.NoError(t, err, action)
	}
	keys, err := client.Keys(t.Context(), "*").Result()
	require.NoError(t, err)
	require.Greater(t, len(keys), 15)
	for _, key := range keys {
		value, err := client.Get(t.Context(), key).Result()
		require.NoError(t, err)
		require.Regexp(t, `^ag:\{[A-Za-z0-9_-]{16}\}[A-Za-z0-9_-]{8}$`, key)
		for _, told := range []string{"someone", "example", "ag_some", "198.51", "\xc6\x33\x64\x09"} {
			require.NotContains(t, key+" "+value, told)
		}
	}
}
