package authguard_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"path"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter"
	"authguard/policies"
)

// visitor is a browser that keeps its cookies, behind the proxy that tests play.
type visitor struct {
	s       *service
	addr    netip.Addr
	cookies map[string]*http.Cookie
}

func (s *service) visitor(addr string) *visitor {
	return &visitor{s, netip.MustParseAddr(addr), map[string]*http.Cookie{}}
}

const deviceCookie = "authdemo_device"

// stolen is another browser with this one's device cookie.
func (v *visitor) stolen(addr netip.Addr) *visitor {
	return &visitor{v.s, addr, map[string]*http.Cookie{deviceCookie: v.cookies[deviceCookie]}}
}

func (v *visitor) post(path string, fields map[string]string) (answer, httpguard.Problem) {
	v.s.Helper()
	body, err := json.Marshal(fields)
	require.NoError(v.s, err)
	r, err := http.NewRequest("POST", v.s.url+path, bytes.NewReader(body))
	require.NoError(v.s, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-For", v.addr.String())
	for _, c := range v.cookies {
		r.AddCookie(c)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(v.s, err)
	defer resp.Body.Close()
	for _, c := range resp.Cookies() {
		v.cookies[c.Name] = c
	}
	var p httpguard.Problem
	if resp.StatusCode >= 400 {
		require.NoError(v.s, json.NewDecoder(resp.Body).Decode(&p))
	}
	return answer{Status: resp.StatusCode, Header: resp.Header}, p
}

func (v *visitor) login(email, password string) (answer, httpguard.Problem) {
	v.s.Helper()
	return v.post("/login", map[string]string{"email": email, "password": password})
}

// register opens an account by the mailed link.
func (v *visitor) register(email, password string) {
	v.s.Helper()
	a, _ := v.post("/register", map[string]string{"email": email, "password": password})
	require.Equal(v.s, 201, a.Status)
	a, _ = v.post("/register/confirm", map[string]string{"token": v.s.token(), "password": password})
	require.Equal(v.s, 204, a.Status)
}

// inMemory reports that a story may be long: it is told over the quickest store.
func (s *service) inMemory() bool { return path.Base(s.Name()) == "memory" }

// LK-01: any number of addresses guess at one account for thirty days and come
// back the moment that each refusal names. Eighty guesses are compared. The owner,
// whose browser is known, logs in all the while and is never refused.
func TestABotnetNeverKeepsOutAKnownDevice(t *testing.T) {
	tell(t, behindAProxy, func(s *service) {
		every := 12 * time.Hour
		if s.inMemory() {
			every = 15 * time.Minute
		}
		home := s.visitor("192.0.2.1")
		a, _ := home.login(owner, correct)
		require.Equal(s, 200, a.Status)

		bot := s.visitor("198.18.0.0") // each attempt comes from the next address
		start, before := s.now(), s.hashes()
		ownerAt, botAt := start, start
		logins, locked := int64(0), false
		for end := start.Add(30 * 24 * time.Hour); s.now().Before(end); {
			if !ownerAt.After(botAt) {
				s.nanos.Store(ownerAt.UnixNano())
				a, p := home.login(owner, correct)
				require.Equal(s, 200, a.Status, "after %v: %v", s.now().Sub(start), p.Violated)
				logins++
				ownerAt = ownerAt.Add(every)
				continue
			}
			s.nanos.Store(botAt.UnixNano())
			bot.addr, bot.cookies = bot.addr.Next(), map[string]*http.Cookie{}
			a, p := bot.login(owner, wrong)
			switch a.Status {
			case 401:
				require.False(s, locked)
			case 429:
				locked = locked || p.Error == "locked"
				botAt = botAt.Add(a.retryAfter())
			default:
				require.Failf(s, "answer", "%d", a.Status)
			}
		}
		require.True(s, locked)
		require.EqualValues(s, 80, s.hashes()-before-logins, "guesses that reached the password")
		a, p := s.visitor("192.0.2.1").login(owner, correct)
		require.Equal(s, 429, a.Status, "a new browser needs a reset link")
		require.Equal(s, "locked", p.Error)
	})
}

// A cookie is stolen, copied fifty times and used from everywhere.
func TestAStolenDeviceCookieIsTwentyGuesses(t *testing.T) {
	tell(t, behindAProxy, func(s *service) {
		home := s.visitor("192.0.2.1")
		a, _ := home.login(owner, correct)
		require.Equal(s, 200, a.Status)
		addr := netip.MustParseAddr("198.18.0.0")
		var copies []*visitor
		for range 50 {
			addr = addr.Next()
			copies = append(copies, home.stolen(addr))
		}
		before := s.hashes()
		var compared atomic.Int64
		var wg sync.WaitGroup
		for _, c := range copies {
			wg.Go(func() {
				if a, _ := c.login(owner, wrong); a.Status == 401 {
					compared.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(s, 5, compared.Load(), "fifty copies have one budget")
		for i := 0; ; i++ {
			a, p := copies[i%50].login(owner, wrong)
			if a.Status == 401 {
				continue
			}
			require.Subset(s, []string{"login/device", "login/devices"}, p.Violated)
			if p.Error == "locked" {
				break
			}
			s.advance(a.retryAfter())
		}
		for range 60 { // days
			s.advance(24 * time.Hour)
			_, p := copies[0].login(owner, wrong)
			require.Equal(s, "locked", p.Error)
		}
		require.EqualValues(s, 20, s.hashes()-before)

		a, _ = s.visitor("192.0.2.1").login(owner, correct)
		require.Equal(s, 200, a.Status, "strangers are counted apart")
		require.Equal(s, 202, s.post("/password-reset", map[string]string{"email": owner}).Status)
		a, _ = home.post("/password-reset/confirm", map[string]string{"token": s.token(), "password": "a brand new passphrase"})
		require.Equal(s, 204, a.Status)
		a, _ = home.login(owner, "a brand new passphrase")
		require.Equal(s, 200, a.Status, "and a reset opens the owner's devices")
		for range 30 { // the stolen cookie is a stranger's
			copies[0].login(owner, wrong)
		}
		a, _ = home.login(owner, "a brand new passphrase")
		require.Equal(s, 200, a.Status)
	})
}

// LK-09: whoever owns an account, and a device of it, and logs in to it between the
// guesses has no more of them.
func TestLoggingInToAnAccountOfOnesOwnGainsNothing(t *testing.T) {
	tell(t, behindAProxy, func(s *service) {
		const mallorys, own = "mallory@example.com", "mallory's own words"
		mallory := s.visitor("198.51.100.9")
		mallory.register(mallorys, own)
		anonymous := s.visitor("198.51.100.9")
		refresh := func() {
			for _, v := range []*visitor{mallory, anonymous} {
				a, _ := v.login(mallorys, own)
				if a.Status == 429 { // by the address's rules, which it does not clear
					continue
				}
				require.Equal(s, 200, a.Status)
			}
			anonymous.cookies = map[string]*http.Cookie{}
		}
		before, logins := s.hashes(), int64(0)
		guess := func(v *visitor, email string) answer {
			refresh()
			logins = s.hashes() - before
			a, _ := v.login(email, wrong)
			return a
		}
		for i := range 5 {
			require.Equal(s, 401, guess(mallory, owner).Status, "guess %d", i)
		}
		for range 5 {
			require.Equal(s, 429, guess(mallory, owner).Status)
			require.Equal(s, 429, guess(anonymous, owner).Status)
		}
		// The tenth account that fails from this address is the last, logins or not.
		for i := range 9 {
			require.Equal(s, 401, guess(mallory, fmt.Sprintf("victim%d@example.com", i)).Status)
		}
		a, p := mallory.login("victim9@example.com", wrong)
		require.Equal(s, 429, a.Status)
		require.Equal(s, []string{"login/spraying"}, p.Violated)
		a, _ = mallory.login(mallorys, own)
		require.Equal(s, 200, a.Status, "what comes from a known device is not the address's")
		require.Equal(s, 429, guess(mallory, "victim9@example.com").Status)
		require.Positive(s, logins)
	})
}

// Two hundred people on known devices share one address with somebody who guesses
// at all of them without pause. Nobody is refused.
func TestAnOfficeBehindAnAttackersAddress(t *testing.T) {
	for name, open := range stores {
		if name == "memcached" {
			continue // the same law in Go as in memory
		}
		t.Run(name, func(t *testing.T) {
			people, minutes, guesses := 200, 60, 60
			if name != "memory" {
				minutes, guesses = 3, 20
			}
			var nanos atomic.Int64
			nanos.Store(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC).UnixNano())
			now := func() time.Time { return time.Unix(0, nanos.Load()) }
			known := map[string]guard.Account{}
			var names, cookies []string
			for i := range people {
				names = append(names, fmt.Sprintf("person%d@example.com", i))
				known[names[i]] = guard.Account{ID: fmt.Sprint(i), Generation: 1}
			}
			var store limiter.Store = open(t, now)
			g, err := guard.New(guard.Config{
				Store: store, Secret: bytes.Repeat([]byte("secret"), 6), Policies: policies.Default(), Now: now,
				Resolve: func(_ context.Context, name string) (guard.Account, error) { return known[name], nil },
			})
			require.NoError(t, err)
			for _, n := range names {
				cookie, _, err := g.TrustDevice(known[n], "")
				require.NoError(t, err)
				cookies = append(cookies, cookie)
			}
			addr := netip.MustParseAddr("203.0.113.7")
			guessed, refused := 0, 0
			for m := range minutes {
				for i := range guesses {
					nanos.Add(int64(time.Minute) / int64(guesses))
					target := (m*guesses + i) % (2 * people) // half of them nobody's
					attempt := guard.Attempt{Action: "login", Account: fmt.Sprintf("person%d@example.com", target), IP: addr, Device: cookies[(target+1)%people]}
					pass, err := g.Check(t.Context(), attempt)
					if err == nil {
						guessed++
						require.False(t, pass.Trusted())
						require.NoError(t, pass.Fail(t.Context()))
						continue
					}
					require.True(t, errors.As(err, new(*guard.Denied)), "%v", err)
					refused++
				}
				for i, n := range names {
					pass, err := g.Check(t.Context(), guard.Attempt{Action: "login", Account: n, IP: addr, Device: cookies[i]})
					require.NoError(t, err, "%s in minute %d", n, m)
					require.True(t, pass.Trusted())
					require.NoError(t, pass.Succeed(t.Context()))
				}
			}
			require.Positive(t, refused, "the attacker was")
			require.LessOrEqual(t, guessed, 100, "of the hour")
			_, err = g.Check(t.Context(), guard.Attempt{Action: "login", Account: names[100], IP: addr})
			require.Error(t, err, "and so would be a person on a new device")
		})
	}
}
