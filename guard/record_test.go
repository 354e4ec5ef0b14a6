package guard_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
)

// tape keeps the records it is told of.
type tape struct {
	mu      sync.Mutex
	records []guard.Record
}

func (t *tape) Record(r guard.Record) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.records = append(t.records, r)
}

// kinds are those of the records so far.
func (t *tape) kinds() (kinds []guard.RecordKind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range t.records {
		kinds = append(kinds, r.Is)
	}
	return kinds
}

func newTaped(t *testing.T, change func(*guard.Config), policies ...guard.Policy) (bench, *tape) {
	records := new(tape)
	return newBench(t, func(c *guard.Config) {
		c.Recorder = records
		if change != nil {
			change(c)
		}
	}, policies...), records
}

// OB-04: nothing in a record can be read, confirmed, or joined with a store's keys.
func TestRecordsHaveKeyedHashesOfTheirOwn(t *testing.T) {
	policy := login(accountRule(), ipRule(5), guard.Rule{Name: "key", By: guard.ByAPIKey, Limits: window(9, time.Hour)},
		guard.Rule{Name: "tenant", By: guard.ByTenant, Limits: window(9, time.Hour)},
		guard.Rule{Name: "city", By: guard.Part("city"), Limits: window(9, time.Hour)})
	secret2 := []byte("another secret of 32 bytes !!!!!")
	b, records := newTaped(t, nil, policy)
	again, sameSecret := newTaped(t, nil, policy)
	other, otherSecret := newTaped(t, func(c *guard.Config) { c.Secret = secret2 }, policy)
	a := guard.Attempt{
		Action: "login", Account: "Bob@Example.com", IP: netip.MustParseAddr("2001:db8:1:2::9"),
		APIKey: "key-of-bob", Tenant: "tenant-of-bob", Parts: map[string]string{"city": "city-of-bob"}, Cost: 1,
	}
	for range 6 {
		b.guess(a)
	}
	again.guess(a)
	other.guess(a)

	text, err := json.Marshal(records.records)
	require.NoError(t, err)
	for _, clear := range []string{"bob", "Bob", "example.com", "2001:", "tenant-of", "city-of", "key-of"} {
		require.NotContains(t, string(text), clear)
	}
	first := records.records[0]
	hashes := append([]string{first.Account, first.IP, first.APIKey, first.Tenant, first.Parts["city"]}, first.Networks...)
	require.Len(t, first.Networks, len(guard.RecordedPrefixes))
	seen := map[string]bool{}
	for _, h := range hashes {
		require.Len(t, h, 16)
		require.False(t, seen[h], "one hash of two subjects")
		seen[h] = true
	}
	refused := b.events.told(guard.Refused)
	require.NotEmpty(t, refused)
	for _, e := range refused {
		require.False(t, seen[e.Subject], "joins a record with a store's key")
	}
	require.Equal(t, first.Account, sameSecret.records[0].Account)
	require.Equal(t, first.Networks, sameSecret.records[0].Networks)
	require.NotEqual(t, first.Account, otherSecret.records[0].Account)
	require.NotEqual(t, first.IP, otherSecret.records[0].IP)

	v4 := guard.Attempt{Action: "login", Account: "bob@example.com", IP: here, APIKey: "k", Tenant: "t", Parts: map[string]string{"city": "c"}}
	again.guess(v4)
	last := sameSecret.records[len(sameSecret.records)-2]
	require.Equal(t, first.Account, last.Account, "all spellings of a name")
	require.Empty(t, last.Networks, "IPv4 addresses are counted one by one")
}

func TestEveryDecisionAndEveryEndIsRecorded(t *testing.T) {
	mails := guard.Policy{Action: "reset", Rules: []guard.Rule{{Name: "mails", By: guard.ByAccount, Limits: window(1, time.Hour), Effect: guard.Silent}}}
	b, records := newTaped(t, nil, login(accountRule()), mails)
	b.requireAdmitted(t, by("bob", here)).Succeed(ctx)
	b.requireAdmitted(t, by("bob", here)).Cancel(ctx)
	b.requireAdmitted(t, by("bob", here)).Shed(ctx)
	b.fail(t, 5, by("bob", here))
	b.requireDenied(t, 15*time.Minute, by("bob", here))
	for range 2 {
		b.requireAdmitted(t, guard.Attempt{Action: "reset", Account: "bob", IP: here})
	}
	require.NoError(t, b.Unlock(ctx, "bob", "login", "login/account"))
	require.Equal(t, []guard.RecordKind{
		"admitted", "succeeded", "admitted", "cancelled", "admitted", "shed",
		"admitted", "failed", "admitted", "failed", "admitted", "failed", "admitted", "failed", "admitted", "failed",
		"refused", "admitted", "silenced", "unlocked", "unlocked",
	}, records.kinds())
	require.Equal(t, records.records[0].ID, records.records[1].ID)
	require.NotEqual(t, records.records[0].ID, records.records[2].ID)
	require.Equal(t, []string{"account"}, records.records[16].Rules)
	require.Equal(t, []string{"mails"}, records.records[18].Rules)
	require.Equal(t, records.records[0].Account, records.records[19].Account)
	require.Equal(t, []string{"account"}, records.records[20].Rules)
	require.Equal(t, b.clock.Now(), records.records[20].At)

	b, records = newTaped(t, func(c *guard.Config) { c.Store = brokenStore{errors.New("down")} }, login(accountRule()))
	_, err := b.Check(context.Background(), by("bob", here))
	require.ErrorIs(t, err, guard.ErrUnavailable)
	require.Equal(t, []guard.RecordKind{"unavailable"}, records.kinds())
}
