// Package authguard_test tells the whole story end to end, through HTTP and
// over every store, as somebody would live it who guesses at passwords, and
// somebody whose password is guessed at.
package authguard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"authguard/authdemo"
	"authguard/authdemo/password"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/testserver"
	"authguard/limiter"
	"authguard/limiter/memcachestore"
	"authguard/limiter/memstore"
	"authguard/limiter/redisstore"
	"authguard/policies"
)

const (
	owner   = "demo@example.com" // seeded in development mode
	correct = "correct horse battery staple"
	wrong   = "wrong horse"
)

// stores are what the story is told over.
var stores = map[string]func(t *testing.T, now func() time.Time) limiter.Store{
	"memory": func(_ *testing.T, now func() time.Time) limiter.Store { return memstore.New(memstore.Config{Now: now}) },
	"redis": func(t *testing.T, now func() time.Time) limiter.Store {
		client := redis.NewClient(&redis.Options{Addr: testserver.Redis(t), ContextTimeoutEnabled: true, ReadTimeout: 30 * time.Second})
		t.Cleanup(func() { client.Close() })
		store, err := redisstore.New(redisstore.Config{Client: client, Timeout: 30 * time.Second, Now: now})
		require.NoError(t, err)
		return store
	},
	"memcached": func(t *testing.T, now func() time.Time) limiter.Store {
		store, err := memcachestore.New(memcachestore.Config{Addrs: []string{testserver.Memcached(t)}, Timeout: 30 * time.Second, Now: now})
		require.NoError(t, err)
		t.Cleanup(store.Close)
		return store
	},
}

// service is the demo, reached through a socket, with a clock of its own.
type service struct {
	*testing.T
	url   string
	demo  *authdemo.Service
	nanos atomic.Int64 // the clock
}

func (s *service) now() time.Time          { return time.Unix(0, s.nanos.Load()) }
func (s *service) advance(d time.Duration) { s.nanos.Add(int64(d)) }
func (s *service) hashes() int64           { return s.demo.Hasher().Computed() }

// tell runs a story over every store. change may change the configuration.
func tell(t *testing.T, change func(*authdemo.Config), story func(s *service)) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := &service{T: t}
			s.nanos.Store(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC).UnixNano())
			cfg := authdemo.Config{
				DB:          filepath.Join(t.TempDir(), "demo.db"),
				Store:       open(t, s.now),
				Secret:      bytes.Repeat([]byte("secret"), 6),
				Policies:    policies.Default(),
				Development: true,
				Password:    password.Params{MemoryKiB: 64, Passes: 1, Threads: 1},
				Gate:        password.GateConfig{Slots: 4, Waiting: 1000, PerAddress: 1000, MaxWait: time.Minute},
				Log:         slog.New(slog.DiscardHandler),
				Now:         s.now,
			}
			if change != nil {
				change(&cfg)
			}
			demo, err := authdemo.New(t.Context(), cfg)
			require.NoError(t, err)
			s.demo = demo
			server := httptest.NewServer(demo)
			t.Cleanup(func() {
				server.Close()
				require.NoError(t, demo.Close(context.Background()))
			})
			s.url = server.URL
			story(s)
		})
	}
}

// answer is a response without what differs at every request.
type answer struct {
	Status int
	Header http.Header
	Body   string
}

func (a answer) retryAfter() time.Duration {
	n, err := strconv.Atoi(a.Header.Get("Retry-After"))
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}

func (s *service) do(method, path, body string, cookies ...*http.Cookie) (answer, []*http.Cookie) {
	s.Helper()
	r, err := http.NewRequest(method, s.url+path, bytes.NewReader([]byte(body)))
	require.NoError(s, err)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json")
	for _, c := range cookies {
		r.AddCookie(c)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(s, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(s, err)
	resp.Header.Del("Date")
	return answer{resp.StatusCode, resp.Header, string(b)}, resp.Cookies()
}

func (s *service) post(path string, fields map[string]string) answer {
	s.Helper()
	body, err := json.Marshal(fields)
	require.NoError(s, err)
	a, _ := s.do("POST", path, string(body))
	return a
}

func (s *service) login(email, password string) answer {
	s.Helper()
	return s.post("/login", map[string]string{"email": email, "password": password})
}

// link is the token of the newest mail's link.
func (s *service) token() string {
	s.Helper()
	a, _ := s.do("GET", "/dev/outbox", "")
	var mails []struct{ To, Link string }
	require.NoError(s, json.Unmarshal([]byte(a.Body), &mails))
	require.NotEmpty(s, mails)
	u, err := url.Parse(mails[0].Link)
	require.NoError(s, err)
	return u.Query().Get("token")
}

// violated are the rules that a refusal names.
func (s *service) violated(a answer) []string {
	s.Helper()
	var p httpguard.Problem
	require.NoError(s, json.Unmarshal([]byte(a.Body), &p))
	return p.Violated
}

func TestFiveGuessesThenAnHonestRefusal(t *testing.T) {
	tell(t, nil, func(s *service) {
		for i := range 5 {
			require.Equal(s, 401, s.login(owner, wrong).Status, "guess %d", i+1)
			s.advance(time.Second)
		}
		before := s.hashes()
		refused := s.login(owner, correct) // even the right password is not looked at
		require.Equal(s, 429, refused.Status)
		require.Equal(s, before, s.hashes(), "refused before any hash is computed")
		require.Equal(s, 895*time.Second, refused.retryAfter())
		require.Equal(s, "application/problem+json", refused.Header.Get("Content-Type"))
		require.Equal(s, "no-store", refused.Header.Get("Cache-Control"))
		require.Empty(s, refused.Header.Get("X-RateLimit-Remaining"), "an account's counters are nobody's business here")
		require.Equal(s, []string{"login/account"}, s.violated(refused))

		for range 100 { // impatience does not lengthen the wait
			s.advance(time.Second)
			require.Equal(s, 429, s.login(owner, wrong).Status)
		}
		s.advance(refused.retryAfter() - 101*time.Second)
		require.Equal(s, 429, s.login(owner, correct).Status, "one second too soon")
		s.advance(time.Second)
		require.Equal(s, 200, s.login(owner, correct).Status, "the wait promised is the wait needed")
	})
}

func TestAnUnknownAccountIsAnsweredAlike(t *testing.T) {
	transcript := func(s *service, email string) (all []answer, hashes int64) {
		before := s.hashes()
		for range 7 {
			all = append(all, s.login(email, wrong))
			s.advance(time.Second)
		}
		return all, s.hashes() - before
	}
	var transcripts [][]answer // each of a service of its own, with the same clock
	for _, email := range []string{owner, "nobody@example.com"} {
		tell(t, nil, func(s *service) {
			all, hashes := transcript(s, email)
			transcripts = append(transcripts, all)
			require.EqualValues(s, 5, hashes, "the same work")
		})
	}
	require.Len(t, transcripts, 2*len(stores))
	for _, other := range transcripts[1:] {
		require.Equal(t, transcripts[0], other, "status, header and body, byte for byte")
	}

	tell(t, nil, func(s *service) {
		a := s.post("/password-reset", map[string]string{"email": owner})
		b := s.post("/password-reset", map[string]string{"email": "nobody@example.com"})
		require.Equal(s, 202, a.Status)
		require.Equal(s, a, b)
	})
}

func TestASuccessIsRefunded(t *testing.T) {
	tell(t, nil, func(s *service) {
		for range 20 {
			require.Equal(s, 200, s.login(owner, correct).Status, "successes do not count")
		}
		for range 4 {
			require.Equal(s, 401, s.login(owner, wrong).Status)
		}
		require.Equal(s, 200, s.login(owner, correct).Status)
		require.Equal(s, 401, s.login(owner, wrong).Status, "the fifth failure")
		require.Equal(s, 429, s.login(owner, correct).Status, "a success gave back its own charge and no other")
	})
}

func TestAResetLiftsTheAccountsCountersAndNotTheAddresss(t *testing.T) {
	narrow := func(c *authdemo.Config) {
		for i, p := range c.Policies {
			if p.Action == "login" {
				rules := []guard.Rule{p.Rules[0], {Name: "ip", By: guard.ByIP, Counts: guard.Failures,
					Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 6, Window: time.Hour}}}}
				c.Policies[i].Rules = rules
			}
		}
	}
	tell(t, narrow, func(s *service) {
		for range 5 {
			require.Equal(s, 401, s.login(owner, wrong).Status)
		}
		require.Equal(s, []string{"login/account"}, s.violated(s.login(owner, correct)))

		require.Equal(s, 202, s.post("/password-reset", map[string]string{"email": owner}).Status)
		reset := map[string]string{"token": s.token(), "password": "a brand new passphrase"}
		require.Equal(s, 204, s.post("/password-reset/confirm", reset).Status)
		require.Equal(s, 400, s.post("/password-reset/confirm", reset).Status, "a link works once")

		require.Equal(s, 200, s.login(owner, "a brand new passphrase").Status, "the owner is back at once")
		require.Equal(s, 401, s.login(owner, correct).Status, "the address's sixth failure")
		require.Equal(s, []string{"login/ip"}, s.violated(s.login(owner, "a brand new passphrase")))
	})
}

func TestParallelGuessesAreFive(t *testing.T) {
	tell(t, nil, func(s *service) {
		var refused, rejected atomic.Int64
		var wg sync.WaitGroup
		start := make(chan struct{})
		for i := range 200 {
			wg.Go(func() {
				<-start
				switch a := s.login(owner, fmt.Sprintf("guess %d", i)); a.Status {
				case 401:
					rejected.Add(1)
				case 429:
					refused.Add(1)
				}
			})
		}
		before := s.hashes()
		close(start)
		wg.Wait()
		require.EqualValues(s, 5, rejected.Load())
		require.EqualValues(s, 195, refused.Load())
		require.EqualValues(s, 5, s.hashes()-before, "exactly five reach the password check")
	})
}

// A guesser who hangs up before the answer pays for the guess all the same.
func TestHangingUpIsAFailure(t *testing.T) {
	slow := func(c *authdemo.Config) {
		c.Password = password.Params{MemoryKiB: 16 << 10, Passes: 3, Threads: 1}
		c.Gate.Slots = 1
	}
	tell(t, slow, func(s *service) {
		before := s.hashes()
		body := fmt.Sprintf(`{"email":%q,"password":%q}`, owner, wrong)
		for range 50 {
			u, err := url.Parse(s.url)
			require.NoError(s, err)
			conn, err := net.Dial("tcp", u.Host)
			require.NoError(s, err)
			_, err = fmt.Fprintf(conn, "POST /login HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", u.Host, len(body), body)
			require.NoError(s, err)
			require.NoError(s, conn.Close())
		}
		require.Eventually(s, func() bool {
			a := s.login(owner, wrong)
			return a.Status == 429 && a.retryAfter() > time.Minute // the limit, and no crowd at Memcached
		}, time.Minute, 10*time.Millisecond)
		require.LessOrEqual(s, s.hashes()-before, int64(5))
		s.advance(15*time.Minute - time.Second)
		require.Equal(s, 429, s.login(owner, correct).Status, "no charge was given back")
	})
}

// The practice that the README promises for the API.
func TestAnAPIKeyHasItsOwnBucket(t *testing.T) {
	tell(t, nil, func(s *service) {
		_, cookies := s.do("POST", "/login", fmt.Sprintf(`{"email":%q,"password":%q}`, owner, correct))
		created, _ := s.do("POST", "/api/keys", "", cookies...)
		require.Equal(s, 201, created.Status)
		var key struct{ Key string }
		require.NoError(s, json.Unmarshal([]byte(created.Body), &key))
		quote := func(key string) answer {
			r, err := http.NewRequest("GET", s.url+"/api/quote", nil)
			require.NoError(s, err)
			r.Header.Set("Authorization", "Bearer "+key)
			resp, err := http.DefaultClient.Do(r)
			require.NoError(s, err)
			defer resp.Body.Close()
			return answer{Status: resp.StatusCode, Header: resp.Header}
		}
		for i := range 10 {
			a := quote(key.Key)
			require.Equal(s, 200, a.Status)
			require.Equal(s, strconv.Itoa(9-i), a.Header.Get("X-RateLimit-Remaining"))
			require.Empty(s, a.Header.Get("Retry-After"))
		}
		a := quote(key.Key)
		require.Equal(s, 429, a.Status)
		require.Equal(s, "1", a.Header.Get("Retry-After"))
		require.Equal(s, "10", a.Header.Get("X-RateLimit-Limit"))
		s.advance(time.Second)
		require.Equal(s, 200, quote(key.Key).Status)
		require.Equal(s, 429, quote(key.Key).Status, "one second admits exactly one more")

		// MO-02: wrong keys are limited by address, and do not touch the good one.
		for range 20 {
			require.Equal(s, 401, quote("ag_wrong").Status)
		}
		require.Equal(s, 429, quote("ag_wrong").Status)
		s.advance(time.Second)
		require.Equal(s, 200, quote(key.Key).Status)
	})
}
