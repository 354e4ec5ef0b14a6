package authguard_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/authdemo"
	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/policies"
)

// behindAProxy trusts the proxy that the tests play.
func behindAProxy(c *authdemo.Config) {
	c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("::1/128")}
}

// guessFrom sends one wrong password by way of the proxy.
func (s *service) guessFrom(addr netip.Addr) (answer, httpguard.Problem) {
	s.Helper()
	r, err := http.NewRequest("POST", s.url+"/login", strings.NewReader(fmt.Sprintf(`{"email":%q,"password":%q}`, owner, wrong)))
	require.NoError(s, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Forwarded-For", addr.String())
	resp, err := http.DefaultClient.Do(r)
	require.NoError(s, err)
	defer resp.Body.Close()
	var p httpguard.Problem
	require.NoError(s, json.NewDecoder(resp.Body).Decode(&p))
	return answer{Status: resp.StatusCode, Header: resp.Header}, p
}

// explained is what policies.Explain says that the login leaves to a botnet at
// one account whose owner does nothing.
func explained(t *testing.T) policies.Left {
	login := slices.DeleteFunc(policies.Default(), func(p guard.Policy) bool { return p.Action != "login" })
	// Rules by address bound nobody who has as many as that.
	login[0].Rules = slices.DeleteFunc(login[0].Rules, func(r guard.Rule) bool { return r.By != guard.ByAccount })
	e, err := policies.Explain(t.Context(), login)
	require.NoError(t, err)
	i := slices.IndexFunc(e, func(l policies.Left) bool { return l.Guesser == policies.Botnet && l.Owner == policies.Idle })
	require.GreaterOrEqual(t, i, 0)
	return e[i]
}

// Somebody with any number of addresses guesses at one account and comes back
// the moment that each refusal names, until no moment is named any more.
func TestABotnetIsLockedOutAndTheOwnerComesBack(t *testing.T) {
	left := explained(t)
	require.Equal(t, policies.Figure{N: 30}, left.Day)
	require.Equal(t, policies.Figure{N: 80}, left.Days30)
	require.EqualValues(t, left.Days30.N, left.LockedAfter)

	tell(t, behindAProxy, func(s *service) {
		var (
			start, before = s.now(), s.hashes()
			addr          = netip.MustParseAddr("198.18.0.0") // each attempt comes from the next
			firstHour     int64
			firstDay      int64
			lastCheck     time.Duration
		)
		for {
			addr = addr.Next()
			a, p := s.guessFrom(addr)
			since := s.now().Sub(start)
			if a.Status == 401 {
				lastCheck = since
				if since < time.Hour {
					firstHour++
				}
				if since < 24*time.Hour {
					firstDay++
				}
				continue
			}
			require.Equal(s, 429, a.Status)
			if p.Error == "locked" {
				require.Equal(s, time.Hour, a.retryAfter())
				require.Contains(s, p.Violated, "login/streak")
				break
			}
			require.Equal(s, "rate_limited", p.Error)
			for _, rule := range p.Violated {
				require.Contains(s, []string{"login/account", "login/streak"}, rule, "no address has done anything twice")
			}
			s.advance(a.retryAfter())
		}
		require.Equal(s, left.Hour.N, firstHour)
		require.Equal(s, left.Day.N, firstDay)
		require.Equal(s, left.Days30.N, s.hashes()-before, "no more than these ever reach the password")
		require.Equal(s, left.LockedIn, lastCheck)

		for range 3 { // no further address brings another, and no wait
			s.advance(time.Hour)
			addr = addr.Next()
			_, p := s.guessFrom(addr)
			require.Equal(s, "locked", p.Error)
		}
		require.Equal(s, left.Days30.N, s.hashes()-before)

		require.Equal(s, 429, s.login(owner, correct).Status, "the owner is locked out, too")
		require.Equal(s, 202, s.post("/password-reset", map[string]string{"email": owner}).Status)
		opened, cookies := s.do("GET", "/password-reset/confirm?"+url.Values{"token": {s.token()}}.Encode(), "")
		require.Equal(s, 200, opened.Status)
		require.Equal(s, 429, s.login(owner, correct).Status, "the link lifts nothing for others")
		in, _ := s.do("POST", "/login", fmt.Sprintf(`{"email":%q,"password":%q}`, owner, correct), cookies...)
		require.Equal(s, 200, in.Status, "but in the browser that opened it, and without a new password")
	})
}
