package guard_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/limiter"
)

// people are the accounts that a resolver knows. Their ids are their names in
// capitals.
type people map[string]guard.Account

func peopleNamed(names ...string) people {
	p := people{}
	for _, n := range names {
		p[n] = guard.Account{ID: strings.ToUpper(n)}
	}
	return p
}

func (p people) resolve(c *guard.Config) {
	c.Resolve = func(_ context.Context, name string) (guard.Account, error) { return p[name], nil }
}

// classes is a login that counts strangers, devices and an account's devices apart.
func classes() guard.Policy {
	account, streaks, device, devices := accountRule(), streakRule(), accountRule(), streakRule()
	account.Clients, streaks.Clients = guard.UntrustedClients, guard.UntrustedClients
	device.Name, device.By, device.Clients = "device", guard.ByDevice, guard.TrustedClients
	devices.Name, devices.Clients = "devices", guard.TrustedClients
	devices.Limits = []limiter.Limit{deviceStreak}
	return login(account, streaks, device, devices)
}

var deviceStreak = limiter.Backoff{Free: 10, Base: time.Second, Factor: 1, Max: time.Hour, LockAfter: 20,
	Forget: 180 * 24 * time.Hour, ForgetBeyond: 180 * 24 * time.Hour}

// trust gives a client of the account a cookie.
func (b bench) trust(t testing.TB, a guard.Account, cookie string) (string, guard.Device) {
	t.Helper()
	cookie, device, err := b.TrustDevice(a, cookie)
	require.NoError(t, err)
	require.Regexp(t, `^[A-Za-z0-9_-]{16}$`, device.ID)
	require.Regexp(t, `^[A-Za-z0-9_-]+$`, cookie, "fit for a cookie")
	require.Less(t, len(cookie), 400)
	return cookie, device
}

func on(device, account string) guard.Attempt {
	a := by(account, here)
	a.Device = device
	return a
}

func (b bench) trusts(t testing.TB, device, account string) bool {
	t.Helper()
	pass, err := b.Check(ctx, on(device, account))
	require.NoError(t, err)
	require.NoError(t, pass.Cancel(ctx))
	return pass.Trusted()
}

// LK-01: whatever strangers do, a device of the account has its own limits.
func TestStrangersCannotRefuseADevice(t *testing.T) {
	p := peopleNamed("bob")
	b := newBench(t, p.resolve, classes())
	cookie, _ := b.trust(t, p["bob"], "")
	require.Equal(t, 6, b.exhaust(t, by("bob", here)))
	require.True(t, b.requireDenied(t, time.Hour, by("bob", here)).Locked)
	pass := b.requireAdmitted(t, on(cookie, "bob"))
	require.True(t, pass.Trusted())
	require.NoError(t, pass.Succeed(ctx))
	require.True(t, b.requireDenied(t, time.Hour, by("bob", here)).Locked, "the success cleared nothing of the strangers'")
}

// A stolen cookie is twenty guesses, however many copies there are of it, and
// costs strangers and owner nothing elsewhere.
func TestAStolenDeviceIsLocked(t *testing.T) {
	p := peopleNamed("bob")
	b := newBench(t, p.resolve, classes())
	stolen, _ := b.trust(t, p["bob"], "")
	other, _ := b.trust(t, p["bob"], "")
	b.fail(t, 5, on(stolen, "bob"))
	require.Equal(t, []string{"device"}, b.requireDenied(t, 15*time.Minute, on(stolen, "bob")).Rules)
	require.NoError(t, b.guess(on(other, "bob")), "each device has its own window")
	require.Equal(t, 14, b.exhaust(t, on(stolen, "bob")), "and all have one streak")
	require.True(t, b.requireDenied(t, time.Hour, on(other, "bob")).Locked)
	b.requireAdmitted(t, by("bob", here))
	require.NoError(t, b.Unlock(ctx, "bob"))
	require.Equal(t, []int64{0, 0}, b.used(t, by("bob", here))[:2], "Unlock clears both classes")
	b.clock.Advance(15 * time.Minute)
	b.requireAdmitted(t, on(other, "bob"))
}

// LK-09, LK-10: a success ends the streak of its own class and of no other.
func TestASuccessClearsTheStreakOfItsOwnClass(t *testing.T) {
	p := peopleNamed("bob")
	b := newBench(t, p.resolve, classes())
	cookie, _ := b.trust(t, p["bob"], "")
	used := func() []int64 { return append(b.used(t, by("bob", here)), b.used(t, on(cookie, "bob"))...) }
	b.fail(t, 2, by("bob", here))
	b.fail(t, 3, on(cookie, "bob"))
	require.Equal(t, []int64{2, 2, 3 /* devices */, 3, 3}, used())
	require.NoError(t, b.requireAdmitted(t, on(cookie, "bob")).Succeed(ctx))
	require.Equal(t, []int64{2, 2, 0, 3, 0}, used())
	b.fail(t, 1, on(cookie, "bob"))
	require.NoError(t, b.requireAdmitted(t, by("bob", here)).Succeed(ctx))
	require.Equal(t, []int64{2, 0, 1, 4, 1}, used())
}

func TestInspectExplainsEitherClass(t *testing.T) {
	p := peopleNamed("bob")
	b := newBench(t, p.resolve, classes())
	cookie, _ := b.trust(t, p["bob"], "")
	rules := func(a guard.Attempt) (all []string) {
		status, err := b.Inspect(ctx, a)
		require.NoError(t, err)
		for _, s := range status {
			all = append(all, s.Rule+" "+s.Clients.String())
		}
		return all
	}
	require.Equal(t, []string{"device trusted", "devices trusted"}, rules(on(cookie, "bob")))
	require.Equal(t, []string{"account untrusted", "streak untrusted", "devices trusted"}, rules(by("bob", here)))
	require.Equal(t, rules(by("eve", here)), rules(on(cookie, "eve")))
}

// Whatever is wrong with a cookie, it is none, and never an error.
func TestWhatIsNoDevice(t *testing.T) {
	p := peopleNamed("bob", "eve")
	b := newBench(t, p.resolve, classes())
	cookie, device := b.trust(t, p["bob"], "")
	require.True(t, b.trusts(t, cookie, "bob"))
	require.True(t, b.trusts(t, cookie, " BOB"))
	require.False(t, b.trusts(t, cookie, "eve"), "another account")
	require.False(t, b.trusts(t, cookie, "nobody"), "an unknown account")
	require.False(t, b.trusts(t, cookie, "BOB's"))

	for i := range len(cookie) {
		require.False(t, b.trusts(t, cookie[:i], "bob"), "the first %d characters", i)
	}
	raw, err := base64.RawURLEncoding.DecodeString(cookie)
	require.NoError(t, err)
	for i := range raw {
		for _, bit := range []byte{1, 0x80} {
			raw[i] ^= bit
			require.False(t, b.trusts(t, base64.RawURLEncoding.EncodeToString(raw), "bob"), "byte %d changed", i)
			raw[i] ^= bit
		}
	}
	for name, text := range map[string]string{
		"two of them":  cookie + cookie,
		"padding":      cookie + "=",
		"quotes":       `"` + cookie + `"`,
		"six entries":  base64.RawURLEncoding.EncodeToString(append(raw, make([]byte, 5*53)...)),
		"a megabyte":   strings.Repeat(cookie, 1<<20/len(cookie)),
		"zeros":        strings.Repeat("A", len(cookie)),
		"not base64":   strings.Repeat("\x00", len(cookie)),
		"another's":    other(t, p),
		"a long shot":  strings.Repeat("_", len(cookie)),
		"only version": "AQ",
	} {
		require.False(t, b.trusts(t, text, "bob"), name)
	}

	b.clock.Advance(guard.DeviceLifetime - time.Second)
	require.Equal(t, b.clock.Now().Add(time.Second), device.Expires.In(b.clock.Now().Location()))
	require.True(t, b.trusts(t, cookie, "bob"))
	b.clock.Advance(time.Second)
	require.False(t, b.trusts(t, cookie, "bob"), "expired")

	first, id := b.trust(t, p["bob"], "")
	second, _ := b.trust(t, p["bob"], "")
	p["bob"] = guard.Account{ID: "BOB", Revoked: []string{"x", id.ID}}
	require.False(t, b.trusts(t, first, "bob"), "revoked")
	require.True(t, b.trusts(t, second, "bob"))
	again, renewed := b.trust(t, p["bob"], first)
	require.NotEqual(t, id.ID, renewed.ID, "what is revoked is not renewed")
	require.True(t, b.trusts(t, again, "bob"))
	p["bob"] = guard.Account{ID: "BOB", Generation: 1}
	require.False(t, b.trusts(t, second, "bob"), "of an old generation")
}

// other is a cookie that a guard with another secret has made.
func other(t testing.TB, p people) string {
	b := newBench(t, func(c *guard.Config) { p.resolve(c); c.Secret = []byte("another secret of 32 bytes !!!!!") }, classes())
	cookie, _ := b.trust(t, p["bob"], "")
	return cookie
}

func TestWithoutAResolverNobodyIsTrusted(t *testing.T) {
	p := peopleNamed("bob")
	cookie, _ := newBench(t, p.resolve, classes()).trust(t, p["bob"], "")
	b := newBench(t, nil, classes())
	require.False(t, b.trusts(t, cookie, "bob"))
	_, _, err := b.TrustDevice(p["bob"], "")
	require.EqualError(t, err, "guard: no device can be trusted: Config.Resolve is nil")
	_, _, err = newBench(t, p.resolve, classes()).TrustDevice(p["nobody"], "")
	require.ErrorIs(t, err, guard.ErrMissing)
	_, _, err = (*guard.Guard)(nil).TrustDevice(p["bob"], "")
	require.Error(t, err)
}

// A computer that a family shares knows all of them, up to five.
func TestACookieHoldsFiveAccounts(t *testing.T) {
	names := []string{"ann", "bob", "cem", "dot", "eve", "fay"}
	p := peopleNamed(names...)
	b := newBench(t, p.resolve, classes())
	cookie, ids := "", map[string]string{}
	issue := func(name string) {
		var d guard.Device
		cookie, d = b.trust(t, p[name], cookie)
		if ids[name] != "" {
			require.Equal(t, ids[name], d.ID, "renewed, not replaced")
		}
		ids[name] = d.ID
		b.clock.Advance(time.Hour)
	}
	trusted := func() (all []string) {
		for _, name := range names {
			if b.trusts(t, cookie, name) {
				all = append(all, name)
			}
		}
		return all
	}
	for _, name := range names[:5] {
		issue(name)
	}
	require.Equal(t, names[:5], trusted())
	for range 10 {
		issue("bob") // one entry an account
	}
	require.Equal(t, names[:5], trusted())
	for g := range uint64(10) { // whatever becomes of its generation
		p["bob"] = guard.Account{ID: "BOB", Generation: g + 1}
		delete(ids, "bob")
		issue("bob")
	}
	require.Equal(t, names[:5], trusted())
	issue("ann")
	issue("fay") // cem's is the oldest
	require.Equal(t, []string{"ann", "bob", "dot", "eve", "fay"}, trusted())
	b.clock.Advance(guard.DeviceLifetime)
	clear(ids)
	issue("ann")
	require.Len(t, cookie, 72, "what has expired is dropped")
}

func TestANewSecretKeepsDevices(t *testing.T) {
	old, next := []byte("a secret of thirty-two bytes !!!"), []byte("the next secret, 32 bytes long !")
	p := peopleNamed("bob", "eve")
	with := func(secret, previous []byte) bench {
		return newBench(t, func(c *guard.Config) { p.resolve(c); c.Secret, c.PreviousSecret = secret, previous }, classes())
	}
	cookie, device := with(old, nil).trust(t, p["eve"], "")
	cookie, _ = with(old, nil).trust(t, p["bob"], cookie)
	require.False(t, with(next, nil).trusts(t, cookie, "bob"))
	b := with(next, old)
	require.True(t, b.trusts(t, cookie, "bob"))
	require.True(t, b.trusts(t, cookie, "eve"))
	renewed, again := b.trust(t, p["eve"], cookie)
	require.Equal(t, device.ID, again.ID, "so that lists of devices stay true")
	require.True(t, b.trusts(t, renewed, "bob"))
	last := with(next, nil)
	require.True(t, last.trusts(t, renewed, "eve"), "signed anew")
	require.False(t, last.trusts(t, renewed, "bob"))

	_, err := guard.New(guard.Config{Store: b.store, Secret: next, PreviousSecret: []byte("short"), Policies: []guard.Policy{classes()}})
	require.EqualError(t, err, "guard: Config.PreviousSecret is 5 bytes, want at least 16")
}

// An owner's page can tell which of the listed devices is at hand.
func TestTheDeviceOfACookie(t *testing.T) {
	p := peopleNamed("bob", "eve")
	b := newBench(t, p.resolve, classes())
	cookie, device := b.trust(t, p["bob"], "")
	got, ok := b.Device(p["bob"], cookie)
	require.True(t, ok)
	require.Equal(t, device.ID, got.ID)
	require.True(t, device.Expires.Equal(got.Expires))
	later := p["bob"]
	later.Generation++
	revoked := p["bob"]
	revoked.Revoked = []string{device.ID}
	for name, a := range map[string]guard.Account{"another's": p["eve"], "nobody's": {}, "an earlier generation's": later, "a revoked one": revoked} {
		_, ok := b.Device(a, cookie)
		require.False(t, ok, name)
	}
	_, ok = b.Device(p["bob"], "")
	require.False(t, ok)
	b.clock.Advance(guard.DeviceLifetime)
	_, ok = b.Device(p["bob"], cookie)
	require.False(t, ok, "expired")
	_, ok = new(guard.Guard).Device(p["bob"], cookie)
	require.False(t, ok)
}

// Two cookies of one account have nothing in common that a stranger could read,
// and no name is in them.
func TestACookieNamesNobody(t *testing.T) {
	p := people{"bob": {ID: "bob@example.com"}}
	cookie, _ := newBench(t, p.resolve, classes()).trust(t, p["bob"], "")
	raw, err := base64.RawURLEncoding.DecodeString(cookie)
	require.NoError(t, err)
	require.NotContains(t, string(raw), "bob")
	require.Len(t, raw, 1+53)
}

// EN-01: to somebody who brings a device cookie of his own, an unknown account
// answers like a known one.
func TestAForeignCookieTellsNoAccount(t *testing.T) {
	p := peopleNamed("bob", "eve")
	b := newBench(t, p.resolve, classes())
	cookie, _ := b.trust(t, p["eve"], "")
	b.fail(t, 3, on(cookie, "bob"))
	b.fail(t, 3, on(cookie, "nobody"))
	known, unknown := b.requireDenied(t, 30*time.Second, on(cookie, "bob")), b.requireDenied(t, 30*time.Second, on(cookie, "nobody"))
	require.Equal(t, known.Error(), unknown.Error())
	require.Equal(t, known.Rules, unknown.Rules)
}

// A policy that tells clients apart needs their account, though no rule counts it.
func TestClassesWithoutARuleByAccount(t *testing.T) {
	p := peopleNamed("bob")
	strangers, all := ipRule(2), ipRule(9)
	strangers.Clients, all.Name = guard.UntrustedClients, "all"
	b := newBench(t, p.resolve, login(strangers, all))
	cookie, _ := b.trust(t, p["bob"], "")
	b.fail(t, 2, by("bob", here))
	require.Equal(t, []string{"ip"}, b.requireDenied(t, 15*time.Minute, by("bob", here)).Rules)
	b.fail(t, 7, on(cookie, "bob"))
	require.Equal(t, []string{"all"}, b.requireDenied(t, 15*time.Minute, on(cookie, "bob")).Rules)
	b.requireAdmitted(t, guard.Attempt{Action: "login", Account: "eve", IP: netip.MustParseAddr("192.0.2.1"), Device: cookie})
}

func TestRulesOfClasses(t *testing.T) {
	store := newBench(t, nil, login(accountRule())).store
	rule := func(change func(*guard.Rule)) guard.Rule { r := accountRule(); change(&r); return r }
	untrusted := rule(func(r *guard.Rule) { r.Clients = guard.UntrustedClients })
	trusted := rule(func(r *guard.Rule) { r.Clients = guard.TrustedClients })
	for want, p := range map[string]guard.Policy{
		`guard: policy login: rule account: Clients is Clients(3), want all, untrusted or trusted`: login(
			rule(func(r *guard.Rule) { r.Clients = 3 })),
		`guard: policy login: rule account counts devices, which only trusted clients have: Clients is all, want trusted`: login(
			rule(func(r *guard.Rule) { r.By = guard.ByDevice })),
		`guard: policy login has no rule that counts trusted clients, so that nothing bounds them`:   login(untrusted),
		`guard: policy login has no rule that counts untrusted clients, so that nothing bounds them`: login(trusted),
		`guard: policy login: rule r: counts different members by device, but one device has only one account: it can never deny`: login(accountRule(), guard.Rule{
			Name: "r", By: guard.ByDevice, Clients: guard.TrustedClients, Members: guard.ByAccount, Limits: []limiter.Limit{limiter.Distinct{Limit: 3, Window: time.Hour}}}),
	} {
		_, err := guard.New(guard.Config{Store: store, Secret: secret, Policies: []guard.Policy{p}})
		require.EqualError(t, err, want)
	}
}

// An attempt without a cookie is asked of the store for its own class, and no more.
func TestEachClassIsChargedForItself(t *testing.T) {
	p := peopleNamed("bob")
	spy := &spyStore{}
	b := newBench(t, func(c *guard.Config) { p.resolve(c); spy.Store = c.Store; c.Store = spy }, classes())
	cookie, _ := b.trust(t, p["bob"], "")
	keys := map[string]bool{}
	for _, a := range []guard.Attempt{by("bob", here), on(cookie, "bob")} {
		b.requireAdmitted(t, a)
		require.Len(t, spy.keys, 2)
		for _, k := range spy.keys {
			require.False(t, keys[k], "the classes have no key in common")
			keys[k] = true
		}
	}
}

// Cookies that were made on the first day of the format, by secret, for bob alone
// and for eve and bob.
const (
	oldCookie  = "Ad86tJSuMCZkC5Q9MiV1LhL25ukiqMpiz3xsNyAAAAAAAAAAAAAt1ZETQsMkcEZnuuCA1ZEY"
	bothCookie = "Ad8267iB5tcSbMT-hCyZKzwfbAlaGJVUpPpsNyAAAAAAAAAAAAA6BsDLkUdi0hBKd_F_z8w93zq0lK4wJmQLlD0yJXUuEvbm6SKoymLPfGw3IAAAAAAAAAAAAC3VkRNCwyRwRme64IDVkRg"
)

func TestTheFormatOfCookiesStays(t *testing.T) {
	b := newBench(t, peopleNamed("bob", "eve").resolve, classes())
	require.True(t, b.trusts(t, oldCookie, "bob"))
	require.False(t, b.trusts(t, oldCookie, "eve"))
	require.True(t, b.trusts(t, bothCookie, "bob"))
	require.True(t, b.trusts(t, bothCookie, "eve"))
}

// Anything may come as a cookie. None but ours is a device, and each can be
// replaced by one.
func FuzzDeviceCookie(f *testing.F) {
	p := peopleNamed("bob", "eve")
	b := newBench(f, p.resolve, classes())
	for _, text := range []string{"", "AQ", oldCookie, bothCookie, oldCookie + oldCookie} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		trusted := b.trusts(t, text, "bob")
		require.Equal(t, trusted, isOurs(text), "%q", text)
		cookie, _ := b.trust(t, p["bob"], text)
		require.True(t, b.trusts(t, cookie, "bob"))
		require.Equal(t, b.trusts(t, text, "eve"), b.trusts(t, cookie, "eve"), "the others stay")
	})
}

// isOurs reports that text has bob's entry, the last one of both old cookies.
func isOurs(text string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(text) > 355 || len(raw)%53 != 1 || raw[0] != 1 {
		return false
	}
	signed, _ := base64.RawURLEncoding.DecodeString(oldCookie)
	for i := 1; i < len(raw); i += 53 {
		if bytes.Equal(raw[i:i+53], signed[1:]) {
			return true
		}
	}
	return false
}
