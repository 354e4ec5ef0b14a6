package authdemo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/guardtest"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// charged is how much the address stands charged for an action, by its rule ip.
func (w *world) charged(action, addr string) int64 {
	w.Helper()
	status, err := w.svc.guard.Inspect(w.Context(), guard.Attempt{Action: action, IP: netip.MustParseAddr(addr)})
	require.NoError(w, err)
	for _, s := range status {
		if s.Rule == "ip" {
			return s.Used()
		}
	}
	require.Fail(w, "no rule ip", action)
	return 0
}

// headers are name, value, name, value. N stands for the number of the request.
func headers(nameValue ...string) func(int) http.Header {
	return func(n int) http.Header {
		h := http.Header{}
		for i := 0; i < len(nameValue); i += 2 {
			h.Add(nameValue[i], strings.ReplaceAll(nameValue[i+1], "N", strconv.Itoa(n)))
		}
		return h
	}
}

// CIP-01, CIP-02, CIP-03, CIP-04, CIP-06, CIP-07, CIP-10, CIP-13, V6-05: which
// address is charged, and not only that somebody is. Six logins a second apart:
// whoever could choose an address would not be refused at the sixth.
func TestTheAddressThatIsCharged(t *testing.T) {
	proxy := []string{"10.0.0.1/32"}
	networks := []string{"10.0.0.0/8", "172.16.0.0/12"}
	everything := []string{
		"X-Forwarded-For", "203.0.113.N", "X-Real-IP", "10.0.0.7", "True-Client-IP", "203.0.113.1N", "Forwarded", "for=127.0.0.1",
		"X-Client-IP", "203.0.113.2N", "Client-IP", "203.0.113.2N", "CF-Connecting-IP", "203.0.113.2N", "Fastly-Client-IP", "203.0.113.2N",
		"X-Cluster-Client-IP", "203.0.113.2N", "X-Forwarded", "for=203.0.113.2N", "X-Original-Forwarded-For", "203.0.113.2N",
	}
	for name, tt := range map[string]struct {
		trusted []string
		peer    string
		header  func(int) http.Header
		charged string
	}{
		"CIP-01: three headers, nobody trusted":   {nil, "198.51.100.9", headers(everything[:6]...), "198.51.100.9"},
		"CIP-02: X-Real-IP of a stranger":         {proxy, "198.51.100.9", headers("X-Real-IP", "10.0.0.7"), "198.51.100.9"},
		"CIP-02: a stranger names a proxy":        {proxy, "198.51.100.9", headers("X-Forwarded-For", "203.0.113.N, 10.0.0.1"), "198.51.100.9"},
		"CIP-03: every header there is":           {nil, "198.51.100.9", headers(everything...), "198.51.100.9"},
		"CIP-04: rubbish before":                  {proxy, "10.0.0.1", headers("X-Forwarded-For", "junk-N, 198.51.100.9"), "198.51.100.9"},
		"CIP-06: localhost before":                {proxy, "10.0.0.1", headers("X-Forwarded-For", "127.0.0.1, 198.51.100.9"), "198.51.100.9"},
		"CIP-06: localhost in Forwarded":          {proxy, "10.0.0.1", headers("X-Forwarded-For", "198.51.100.9", "Forwarded", "for=127.0.0.N"), "198.51.100.9"},
		"CIP-06: Forwarded alone":                 {proxy, "10.0.0.1", headers("Forwarded", "for=127.0.0.N"), "10.0.0.1"},
		"CIP-07: another header agrees":           {proxy, "10.0.0.1", headers("X-Forwarded-For", "203.0.113.N, 198.51.100.9", "Client-IP", "203.0.113.N"), "198.51.100.9"},
		"CIP-07: another header disagrees":        {proxy, "10.0.0.1", headers("X-Forwarded-For", "203.0.113.N, 198.51.100.9", "Client-IP", "203.0.113.1N"), "198.51.100.9"},
		"CIP-10: a balancer that changes":         {networks, "10.0.0.1", headers("X-Forwarded-For", "198.51.100.9, 172.16.0.1, 10.0.0.N"), "198.51.100.9"},
		"CIP-10: and a prefix by the client":      {networks, "10.0.0.1", headers("X-Forwarded-For", "203.0.113.N, 198.51.100.9, 172.16.0.1, 10.0.0.N"), "198.51.100.9"},
		"CIP-13: the edge appends":                {proxy, "10.0.0.1", headers("X-Forwarded-For", "9.9.9.N, 198.51.100.9"), "198.51.100.9"},
		"CIP-13: the edge adds a line":            {proxy, "10.0.0.1", headers("X-Forwarded-For", "9.9.9.N", "X-Forwarded-For", "198.51.100.9"), "198.51.100.9"},
		"CIP-13: no chain":                        {proxy, "10.0.0.1", headers("X-Real-IP", "203.0.113.N"), "10.0.0.1"},
		"CIP-13: nothing but proxies":             {networks, "10.0.0.1", headers("X-Forwarded-For", "172.16.0.N"), "10.0.0.1"},
		"CIP-13: the last entry is rubbish":       {proxy, "10.0.0.1", headers("X-Forwarded-For", "203.0.113.N, rubbish"), "10.0.0.1"},
		"CIP-13: the last entry has a wrong port": {proxy, "10.0.0.1", headers("X-Forwarded-For", "203.0.113.N, 198.51.100.9:x"), "10.0.0.1"},
		"V6-05: mapped, behind the proxy":         {proxy, "10.0.0.1", headers("X-Forwarded-For", "::ffff:198.51.100.9"), "198.51.100.9"},
		"V6-05: a mapped proxy":                   {proxy, "::ffff:10.0.0.1", headers("X-Forwarded-For", "203.0.113.N, 198.51.100.9"), "198.51.100.9"},
		"V6-05: another zone each time":           {proxy, "10.0.0.1", headers("X-Forwarded-For", "2001:DB8:0:0::1%N"), "2001:db8::"},
		"V6-03: another address of one network":   {proxy, "10.0.0.1", headers("X-Forwarded-For", "2001:db8:1:2::N"), "2001:db8:1:2::"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, fivePerAddress, behind(tt.trusted...))
			c := w.from(tt.peer)
			for n := range 5 {
				c.header = tt.header(n)
				require.Equal(t, http.StatusUnauthorized, c.login(fmt.Sprintf("a%d@example.com", n), "guess").Code)
				w.advance(time.Second)
			}
			c.header = tt.header(5)
			rec := c.login("a5@example.com", "guess")
			require.Equal(t, http.StatusTooManyRequests, rec.Code)
			require.Equal(t, "895", rec.Header().Get("Retry-After"))
			for _, addr := range []string{"198.51.100.9", "10.0.0.1", "10.0.0.7", "127.0.0.1", "203.0.113.0", "203.0.113.1", "9.9.9.0", "172.16.0.1", "2001:db8::", "2001:db8:1:2::"} {
				want := int64(0)
				if addr == tt.charged {
					want = 5
				}
				require.Equal(t, want, w.charged(actLogin, addr), addr)
			}
		})
	}
}

// CIP-11: nobody spends a victim's budget, directly or through a proxy.
func TestNobodySpendsAnothersBudget(t *testing.T) {
	for name, tt := range map[string]struct {
		trusted                  []string
		peer, victimPeer         string
		attackerSends, proxySays string
	}{
		"directly":        {nil, "198.51.100.9", "192.0.2.77", "192.0.2.77", ""},
		"through a proxy": {[]string{"10.0.0.1/32"}, "10.0.0.1", "10.0.0.1", "192.0.2.77, 198.51.100.9", "192.0.2.77"},
	} {
		w := newWorld(t, fivePerAddress, behind(tt.trusted...)).withOwner()
		attacker := w.from(tt.peer)
		attacker.header = headers("X-Forwarded-For", tt.attackerSends)(0)
		for i := range 6 {
			attacker.login(fmt.Sprintf("a%d@example.com", i), "guess")
		}
		require.Zero(t, w.charged(actLogin, "192.0.2.77"), name)
		victim := w.from(tt.victimPeer)
		if tt.proxySays != "" {
			victim.header = headers("X-Forwarded-For", tt.proxySays)(0)
		}
		require.Equal(t, http.StatusOK, victim.login(owner, ownerPassword).Code, name)
		require.EqualValues(t, 1, w.charged(actLogin, "192.0.2.77"), name)
	}
}

// CIP-09: without trust all clients of a proxy share one budget, and with it
// each has its own.
func TestClientsOfAProxyShareABudgetUntilItIsTrusted(t *testing.T) {
	for _, trusted := range []bool{false, true} {
		proxies := []string{}
		if trusted {
			proxies = append(proxies, "10.0.0.1/32")
		}
		w := newWorld(t, fivePerAddress, behind(proxies...))
		stale, other := w.from("10.0.0.1"), w.from("10.0.0.1")
		stale.header, other.header = headers("X-Forwarded-For", "198.51.100.9")(0), headers("X-Forwarded-For", "192.0.2.1")(0)
		for range 6 {
			stale.login("stale@example.com", "guess")
		}
		want := http.StatusTooManyRequests
		if trusted {
			want = http.StatusUnauthorized
		}
		require.Equal(t, want, other.login("other@example.com", "guess").Code)
	}
}

// V6-02, V6-05, V6-06: the clients of a dual-stack listener are apart.
func TestMappedAddressesAreApart(t *testing.T) {
	w := newWorld(t, fivePerAddress)
	for i := range 6 {
		w.from("::ffff:198.51.100.1").login(fmt.Sprintf("a%d@example.com", i), "guess")
	}
	require.Equal(t, http.StatusTooManyRequests, w.from("198.51.100.1").login("x@example.com", "guess").Code, "the same client")
	for i := range 5 {
		require.Equal(t, http.StatusUnauthorized, w.from("::ffff:198.51.100.2").login(fmt.Sprintf("b%d@example.com", i), "guess").Code)
	}
}

// AC-10: nothing beside the declared field makes a new key: not the query, not
// another field, not a second value.
func TestNothingBesideTheAccountMakesANewBudget(t *testing.T) {
	w := newWorld(t).withOwner()
	for i := range 5 {
		target := fmt.Sprintf("/login?email=%d@j.test&identifier=%d", i, i)
		c := w.from(fmt.Sprintf("192.0.2.%d", i))
		require.Equal(t, http.StatusUnauthorized, c.send(http.MethodPost, target, "application/json", body([]string{"email", owner, "password", "x"})).Code)
	}
	require.Equal(t, http.StatusTooManyRequests, w.from("192.0.2.9").login(owner, ownerPassword).Code)

	w = newWorld(t, fivePerAddress).withOwner()
	c := w.from("198.51.100.9")
	for i := range 5 { // a field more is refused, and paid for
		rec := c.send(http.MethodPost, "/login", "application/json", fmt.Sprintf(`{"identifier":"bob","email":"%d@j.test","password":"x"}`, i))
		require.Equal(t, http.StatusBadRequest, rec.Code)
	}
	require.Equal(t, http.StatusTooManyRequests, c.login(owner, ownerPassword).Code)

	w = newWorld(t)
	c = w.from("198.51.100.9")
	codes := map[int]int{}
	for i := range 30 { // a token belongs to nobody until it fits: the address is charged
		codes[c.post("/password-reset/confirm", "token", fmt.Sprint("token", i), "password", "new words of mine").Code]++
	}
	require.Equal(t, map[int]int{http.StatusBadRequest: 20, http.StatusTooManyRequests: 10}, codes)
}

// ME-06: a name of a mebibyte costs no hash, and is paid for.
func TestAHugeNameIsRefusedAndPaidFor(t *testing.T) {
	w := newWorld(t, fivePerAddress)
	huge := strings.Repeat("x", 1<<20)
	c := w.from("198.51.100.9")
	require.Equal(t, http.StatusRequestEntityTooLarge, c.login(huge, "guess").Code)
	require.Equal(t, http.StatusRequestEntityTooLarge, c.postForm("/login", "email", huge, "password", "guess").Code)
	require.Zero(t, w.svc.Hasher().Computed())
	require.EqualValues(t, 2, w.charged(actLogin, "198.51.100.9"))
}

// AC-03, PR-01: two addresses in one request, in any form, are refused, paid for
// and mailed to neither. The mail goes to the address as it is stored.
func TestAResetIsMailedToTheStoredAddressOnly(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.from("198.51.100.9")
	const evil = "evil@example.net"
	form := "application/x-www-form-urlencoded"
	for i, tt := range []struct{ contentType, body string }{
		{form, "user[email][]=" + owner + "&user[email][]=" + evil},
		{form, "email[]=" + owner + "&email[]=" + evil},
		{form, "email=" + owner + "&email=" + evil},
		{"application/json", `{"email":["` + owner + `","` + evil + `"]}`},
		{"application/json", `{"email":{"0":"` + owner + `"}}`},
		{"application/json", `{"email":"` + owner + `","email":"` + evil + `"}`},
	} {
		rec := c.send(http.MethodPost, "/password-reset", tt.contentType, tt.body)
		require.Equal(t, http.StatusBadRequest, rec.Code, tt.body)
		require.EqualValues(t, i+1, w.charged(actReset, "198.51.100.9"), tt.body)
	}
	for _, typed := range []string{owner + "," + evil, owner + "\r\nBcc: " + evil, owner + "\x00", "Owner <" + owner + ">"} {
		c = w.from("192.0.2.1")
		require.Equal(t, http.StatusAccepted, c.post("/password-reset", "email", typed).Code)
	}
	w.svc.mails.flush(t.Context())
	require.Empty(t, w.box.Mails())

	require.Equal(t, http.StatusAccepted, c.post("/password-reset", "email", " ⓄWNER@Example.com").Code)
	w.svc.mails.flush(t.Context())
	require.Len(t, w.box.Mails(), 1)
	require.Equal(t, owner, w.box.Mails()[0].To)
}

// PR-02, PR-04: whoever has guessed wrong tokens is not let in with the right
// one until the window has aged, whatever was issued since. The owner, at home,
// is not kept out by that.
func TestARightTokenIsRefusedAfterTooManyWrongOnes(t *testing.T) {
	w := newWorld(t).withOwner()
	guesser := w.from("198.51.100.9")
	confirm := func(c *client, token string) *httptest.ResponseRecorder {
		return c.post("/password-reset/confirm", "token", token, "password", "new words of mine")
	}
	for i := range 20 {
		require.Equal(t, http.StatusBadRequest, confirm(guesser, fmt.Sprint(i)).Code)
		if i%5 == 4 {
			require.Equal(t, http.StatusAccepted, w.from(fmt.Sprintf("192.0.2.%d", i)).post("/password-reset", "email", owner).Code)
		}
	}
	before := w.svc.Hasher().Computed()
	token := w.token(owner)
	rec := confirm(guesser, token)
	require.Equal(t, http.StatusTooManyRequests, rec.Code)
	require.Equal(t, before, w.svc.Hasher().Computed())
	wait, err := strconv.Atoi(rec.Header().Get("Retry-After"))
	require.NoError(t, err)
	w.advance(time.Duration(wait-1) * time.Second)
	require.Equal(t, http.StatusTooManyRequests, confirm(guesser, token).Code)
	require.Equal(t, http.StatusNoContent, confirm(w.from("192.0.2.200"), token).Code, "the owner's own address")
	w.advance(time.Second)
	require.Equal(t, http.StatusBadRequest, confirm(guesser, token).Code, "looked at again, and used up by now")
}

// PR-03: guesses at a session's password are the account's, wherever they come from.
func TestAnotherAddressBuysNoGuessInASession(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.loggedIn("192.0.2.1")
	change := func(i int, current string) int {
		c.addr = fmt.Sprintf("198.51.100.%d", i)
		return c.post("/account/password", "current", current, "new", "new words of mine").Code
	}
	for i := range 5 {
		require.Equal(t, http.StatusUnauthorized, change(i, "guess"))
	}
	require.Equal(t, http.StatusTooManyRequests, change(9, ownerPassword))
	w.advance(15*time.Minute - time.Second)
	require.Equal(t, http.StatusTooManyRequests, change(9, ownerPassword))
	w.advance(time.Second)
	require.Equal(t, http.StatusNoContent, change(9, ownerPassword))
}

// LK-02, LK-05, AL-06: an attacker who goes on every second does not keep the
// owner out for longer than was said at first, under all rules of the preset.
func TestAnAttackerWhoGoesOnProlongsNothing(t *testing.T) {
	w := newWorld(t).withOwner()
	for i := range 5 {
		require.Equal(t, http.StatusUnauthorized, w.from(fmt.Sprintf("203.0.113.%d", i)).login(owner, "guess").Code)
	}
	for i := range 899 {
		w.advance(time.Second)
		rec := w.from(fmt.Sprintf("203.0.113.%d", i%250)).login(owner, "guess")
		require.Equal(t, http.StatusTooManyRequests, rec.Code)
		require.Equal(t, strconv.Itoa(899-i), rec.Header().Get("Retry-After"))
	}
	w.advance(time.Second)
	require.Equal(t, http.StatusOK, w.from("192.0.2.1").login(owner, ownerPassword).Code)
}

// EN-01: failures at names that nobody has count for the address, too.
func TestUnknownNamesCountForTheAddress(t *testing.T) {
	w := newWorld(t).withOwner()
	for i, email := range []string{owner, "nobody@example.com", "nothing@example.com"} {
		require.Equal(t, http.StatusUnauthorized, w.from("198.51.100.9").login(email, "guess").Code)
		require.EqualValues(t, i+1, w.charged(actLogin, "198.51.100.9"))
	}
}

// EN-01, EN-06, LK-06: a lock is told alike of names that nobody has, and a
// completed reset opens it.
func TestALockIsToldAlikeAndAResetOpensIt(t *testing.T) {
	w := newWorld(t, only(actLogin, guard.Rule{Name: "streak", By: guard.ByAccount, Counts: guard.Failures, Limits: []limiter.Limit{
		limiter.Backoff{Free: 2, Base: 30 * time.Second, Factor: 2, Max: time.Hour, LockAfter: 4, Forget: 24 * time.Hour, ForgetBeyond: 48 * time.Hour}}})).withOwner()
	c := w.from("198.51.100.9")
	for i := range 12 {
		known, unknown := c.login(owner, "guess"), c.login("nobody@example.com", "guess")
		same(t, known, unknown)
		if i == 11 {
			require.Equal(t, http.StatusTooManyRequests, known.Code)
			require.Contains(t, known.Body.String(), `"locked"`)
		}
		w.advance(time.Minute)
	}
	require.Equal(t, http.StatusTooManyRequests, c.login(owner, ownerPassword).Code)
	c.post("/password-reset", "email", owner)
	require.Equal(t, http.StatusNoContent, c.post("/password-reset/confirm", "token", w.token(owner), "password", "new words of mine").Code)
	require.Equal(t, http.StatusOK, c.login(owner, "new words of mine").Code)
}

// EN-02, EN-03, MO-07: one hash for each answer that looks at the password and
// none for one that does not, cold and warm, for known names and unknown ones.
func TestEveryAnswerCostsTheSameWork(t *testing.T) {
	for _, warm := range []bool{false, true} {
		for _, email := range []string{owner, "nobody@example.com"} {
			w := newWorld(t).withOwner()
			if warm {
				require.Equal(t, http.StatusOK, w.from("192.0.2.1").login(owner, ownerPassword).Code)
				require.Equal(t, http.StatusUnauthorized, w.from("192.0.2.1").login("somebody@example.com", "guess").Code)
			}
			for i := range 10 {
				before, want := w.svc.Hasher().Computed(), int64(1)
				if i >= 5 {
					want = 0
				}
				w.from(fmt.Sprintf("198.51.100.%d", i)).login(email, "guess")
				require.Equal(t, want, w.svc.Hasher().Computed()-before, "%s, attempt %d", email, i)
			}
		}
	}
}

// MO-01, MO-03: a good key is counted as itself, in the tier of users. Its
// address's budget for strangers is neither asked nor charged.
func TestAGoodKeyIsCountedAsItself(t *testing.T) {
	w := newWorld(t).withOwner()
	key := w.loggedIn("192.0.2.1").newKey()
	c := w.from("198.51.100.9")
	for range 21 { // the strangers' budget of this address is gone
		c.get("/api/quote")
	}
	strangers := w.charged(actNoKey, "198.51.100.9")
	found, err := w.svc.accounts.ByKey(t.Context(), key)
	require.NoError(t, err)
	c.header.Set("X-API-Key", key)
	for i := range 3 {
		rec := c.get("/api/quote")
		require.Equal(t, http.StatusOK, rec.Code)
		require.Equal(t, "10", rec.Header().Get("X-RateLimit-Limit"))
		status, err := w.svc.guard.Inspect(t.Context(), guard.Attempt{Action: actAPI, APIKey: strconv.FormatInt(found.ID, 10)})
		require.NoError(t, err)
		require.EqualValues(t, i+1, status[0].Used())
	}
	require.Equal(t, strangers, w.charged(actNoKey, "198.51.100.9"))
}

// MO-01: a rule that counts by what a request does not have is a fault of the
// program: 500, one line in the log, and nobody is charged.
func TestARuleWithoutItsSubjectIsAFault(t *testing.T) {
	w := newWorld(t, only(actAPI,
		guard.Rule{Name: "ip", By: guard.ByIP, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 5, Window: time.Minute}}},
		guard.Rule{Name: "tenant", By: guard.ByTenant, Limits: []limiter.Limit{limiter.SlidingWindow{Limit: 5, Window: time.Minute}}})).withOwner()
	c := w.from("198.51.100.9")
	c.header.Set("X-API-Key", w.loggedIn("192.0.2.1").newKey())
	rec := c.get("/api/quote")
	require.Equal(t, http.StatusInternalServerError, rec.Code)
	require.Equal(t, 1, strings.Count(w.log.String(), "level=ERROR"))
	require.Contains(t, w.log.String(), "api/tenant counts by tenant")
	require.Zero(t, w.charged(actAPI, "198.51.100.9"))
}

// MO-06: a link that is merely opened does nothing for an account once its
// client has tried too many tokens, and its page does not show that.
func TestARefusedAddressLiftsNothingByALink(t *testing.T) {
	streak := guard.Rule{Name: "streak", By: guard.ByAccount, Shared: "password", Counts: guard.Failures, Limits: []limiter.Limit{
		limiter.Backoff{Free: 1, Base: time.Second, Factor: 1, Max: time.Second, LockAfter: 2, Forget: 24 * time.Hour, ForgetBeyond: 48 * time.Hour}}}
	w := newWorld(t, only(actLogin, streak), only(actReauth, streak)).withOwner()
	c := w.from("198.51.100.9")
	for range 2 {
		require.Equal(t, http.StatusUnauthorized, c.login(owner, "guess").Code)
		w.advance(time.Second)
	}
	require.Contains(t, c.login(owner, ownerPassword).Body.String(), `"locked"`)
	for i := range 21 {
		c.post("/password-reset/confirm", "token", fmt.Sprint(i), "password", "new words of mine")
	}
	c.post("/password-reset", "email", owner)
	token := w.token(owner)
	wrong, right := c.get("/password-reset/confirm?token=wrong"), c.get("/password-reset/confirm?token="+token)
	require.Equal(t, http.StatusOK, right.Code)
	require.Equal(t, wrong.Header(), right.Header())
	require.Equal(t, wrong.Body.String(), strings.ReplaceAll(right.Body.String(), token, "wrong"))
	require.Contains(t, w.from("192.0.2.1").login(owner, ownerPassword).Body.String(), `"locked"`)
}

// MC-05: pages, pictures and mistaken paths cost nobody anything.
func TestOnlyDeclaredRoutesAreCharged(t *testing.T) {
	var store *memstore.Store
	w := newWorld(t, fivePerAddress, func(c *Config) { store = c.Store.(*memstore.Store) })
	c := w.from("198.51.100.9")
	for range 20 {
		for _, path := range []string{"/", "/login", "/style.css", "/healthz", "/me", "/favicon.ico", "/login/", "/password-reset/confirm"} {
			c.get(path)
			c.send(http.MethodHead, path, "", "")
		}
		c.send(http.MethodOptions, "/login", "", "")
		c.send(http.MethodPut, "/login", "application/json", "{}")
	}
	require.Zero(t, store.Stats().Keys)
	require.True(t, w.spent("198.51.100.9", headers()), "all five were left")
}

// OB-04: no route leaves a name, an address or a key in the store.
func TestNoRouteLeavesANameInTheStore(t *testing.T) {
	store := guardtest.Open(t)
	w := newWorld(t, over(store)).withOwner()
	c := w.loggedIn("198.51.100.9")
	c.login(owner, "guess")
	c.login("nobody@example.com", "guess")
	c.post("/register", "email", "new@example.com", "password", "a good password")
	c.post("/register/confirm", "token", "some-token", "password", "a good password")
	c.post("/password-reset", "email", owner)
	c.post("/password-reset/confirm", "token", w.token(owner), "password", "new words of mine")
	c.login(owner, "new words of mine")
	c.post("/account/password", "current", "new words of mine", "new", "newer words of mine")
	c.header.Set("X-API-Key", c.newKey())
	c.get("/api/quote")
	c.header.Set("X-API-Key", "ag_wrong")
	c.get("/api/quote")
	keys := map[string]bool{}
	for _, charge := range slices.Concat(store.Attempts()...) {
		keys[charge.Key] = true
	}
	require.Greater(t, len(keys), 15)
	for key := range keys {
		require.Regexp(t, `^ag:\{[A-Za-z0-9_-]{16}\}[A-Za-z0-9_-]{8}$`, key)
		for _, name := range []string{"owner", "example", "198.51", url.QueryEscape(owner)} {
			require.NotContains(t, key, name)
		}
	}
}

// PR-06: what sends no mail uses up nobody's mails. Requests with an address that is
// none are paid for by who makes them.
func TestWhatSendsNoMailUsesUpNoMails(t *testing.T) {
	w := newWorld(t).withOwner()
	for i := range 50 {
		c := w.from(fmt.Sprintf("198.51.100.%d", i))
		require.Equal(t, http.StatusBadRequest, c.post("/register", "email", "new@example.com", "password", "short").Code)
		require.Equal(t, http.StatusBadRequest, c.post("/password-reset", "mail", owner).Code)
		require.Equal(t, http.StatusAccepted, c.post("/password-reset", "email", "nobody@example.com").Code)
	}
	require.Empty(t, w.mails("new@example.com"))
	require.Equal(t, http.StatusCreated, w.from("192.0.2.1").post("/register", "email", "new@example.com", "password", "a good password").Code)
	require.Len(t, w.mails("new@example.com"), 1)
	w.from("192.0.2.1").post("/password-reset", "email", owner)
	require.Len(t, w.mails(owner), 1)

	noisy := w.from("203.0.113.1")
	for range 5 {
		require.Equal(t, http.StatusBadRequest, noisy.post("/register", "email", "no address", "password", "a good password").Code)
	}
	require.Equal(t, http.StatusTooManyRequests, noisy.post("/register", "email", "no address", "password", "a good password").Code)
}

// OB-03: a flood at one account is one line of the log a window, and the line tells
// it from other subjects without naming it.
func TestARefusalIsLoggedOnceAWindow(t *testing.T) {
	w := newWorld(t).withOwner()
	lines := func() []string {
		return slices.DeleteFunc(strings.Split(w.log.String(), "\n"), func(line string) bool {
			return !strings.Contains(line, "event=refused") || !strings.Contains(line, "rule=account")
		})
	}
	flood := func(email string) {
		for i := range 40 {
			w.from(fmt.Sprintf("203.0.113.%d", i)).login(email, "guess")
		}
	}
	flood(owner)
	require.Len(t, lines(), 1)
	flood("nobody@example.com")
	require.Len(t, lines(), 2, "the same of names that nobody has")
	subject := regexp.MustCompile(`subject=(\S{16})`)
	first, second := subject.FindStringSubmatch(lines()[0]), subject.FindStringSubmatch(lines()[1])
	require.NotEqual(t, first[1], second[1])
	for _, line := range lines() {
		require.NotContains(t, line, "example.com")
		require.NotContains(t, line, "203.0.113")
	}
	w.advance(15 * time.Minute)
	flood(owner)
	require.Len(t, lines(), 3)
	require.Equal(t, first[1], subject.FindStringSubmatch(lines()[2])[1])
}
