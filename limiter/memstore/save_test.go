package memstore_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

func saved(t testing.TB, s *memstore.Store) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, s.Save(&b))
	return b.Bytes()
}

func load(t testing.TB, c memstore.Config, data []byte) *memstore.Store {
	t.Helper()
	s, err := memstore.Load(c, bytes.NewReader(data))
	require.NoError(t, err)
	return s
}

var allLaws = []limiter.Limit{
	limiter.TokenBucket{Capacity: 20, Refill: 3, Per: time.Minute},
	limiter.LeakyBucket{Capacity: 9, Leak: 1, Per: time.Second},
	limiter.FixedWindow{Limit: 7, Window: time.Minute},
	limiter.SlidingWindowCounter{Limit: 7, Window: time.Minute},
	five,
	limiter.SlidingWindow{Limit: 200, Window: time.Hour},
	limiter.Backoff{Free: 3, Base: time.Second, Factor: 2, Max: time.Minute, LockAfter: 8, Forget: time.Hour, ForgetBeyond: 24 * time.Hour},
	limiter.Distinct{Limit: 4, Window: time.Hour},
}

// Whatever was charged, the store that is loaded answers as the saved one would,
// and takes back what that one has charged.
func TestALoadedStoreGoesOnAsTheSavedOne(t *testing.T) {
	for _, maxBytes := range []int64{0, 1 << 20} { // as many shards as before, and fewer
		c, r := newClock(), rand.New(rand.NewPCG(1, 2))
		ask := func(i int) limiter.Charge {
			n := r.IntN(40)
			return limiter.Charge{Key: fmt.Sprint(n, "/", i), Limit: allLaws[i], Ask: limiter.Ask{
				Cost: 1 + r.Int64N(2), Member: limiter.Member(fmt.Sprint(r.IntN(6))),
			}}
		}
		before := memstore.New(memstore.Config{Now: c.Now})
		var receipts [][]limiter.Charge
		for range 4_000 {
			batch := []limiter.Charge{ask(r.IntN(4)), ask(4 + r.IntN(4))}
			_, err := before.Take(ctx, batch)
			require.NoError(t, err)
			receipts = append(receipts, batch)
			c.Advance(time.Duration(r.IntN(100)) * time.Millisecond)
		}
		after := load(t, memstore.Config{MaxBytes: maxBytes, Now: c.Now}, saved(t, before))
		for _, receipt := range receipts[3_900:] {
			same := append([]limiter.Charge(nil), receipt...)
			require.NoError(t, before.Refund(ctx, receipt))
			require.NoError(t, after.Refund(ctx, same))
		}
		denied := 0
		for range 4_000 {
			was := []limiter.Charge{ask(r.IntN(4)), ask(4 + r.IntN(4))}
			is := append([]limiter.Charge(nil), was...)
			_, err := before.Take(ctx, was)
			require.NoError(t, err)
			ok, err := after.Take(ctx, is)
			require.NoError(t, err)
			require.Equal(t, was, is)
			if !ok {
				denied++
			}
			c.Advance(time.Duration(r.IntN(100)) * time.Millisecond)
		}
		require.NotZero(t, denied)
		require.Less(t, denied, 4_000)
		require.Zero(t, after.Stats().Evicted)
	}
}

// What denies is still kept at all costs.
func TestAFloodFreesNobodyWhoWasLoaded(t *testing.T) {
	c := newClock()
	before := memstore.New(memstore.Config{MaxBytes: 1 << 20, Now: c.Now})
	for i := range 500 {
		require.True(t, hit(t, before, fmt.Sprint("blocked", i), five, 5))
	}
	after := load(t, memstore.Config{MaxBytes: 1 << 20, Now: c.Now}, saved(t, before))
	for i := range 100_000 {
		require.True(t, hit(t, after, fmt.Sprint("invented", i), five, 1))
	}
	require.NotZero(t, after.Stats().Evicted)
	for i := range 500 {
		require.False(t, hit(t, after, fmt.Sprint("blocked", i), five, 1), "a blocked key is free")
	}
}

// A store that has become smaller keeps what it can, and those who are denied first.
func TestASmallerStoreKeepsThoseWhoAreDenied(t *testing.T) {
	c := newClock()
	before := memstore.New(memstore.Config{Now: c.Now})
	for i := range 20_000 {
		hit(t, before, fmt.Sprint("some", i), five, 1)
	}
	for i := range 500 {
		hit(t, before, fmt.Sprint("blocked", i), five, 5)
	}
	after := load(t, memstore.Config{MaxBytes: 256 << 10, Now: c.Now}, saved(t, before))
	require.NotZero(t, after.Stats().Evicted)
	require.LessOrEqual(t, after.Stats().Bytes, 256<<10)
	for i := range 500 {
		require.False(t, hit(t, after, fmt.Sprint("blocked", i), five, 1), "a blocked key is free")
	}
}

func TestWhatIsWholeAgainIsNotLoaded(t *testing.T) {
	c := newClock()
	before := memstore.New(memstore.Config{Now: c.Now})
	hit(t, before, "short", limiter.FixedWindow{Limit: 1, Window: time.Second}, 1)
	hit(t, before, "long", five, 5)
	data := saved(t, before)
	c.Advance(2 * time.Second)
	require.Less(t, len(saved(t, before)), len(data), "nor saved")
	after := load(t, memstore.Config{Now: c.Now}, data)
	require.Equal(t, 1, after.Stats().Keys)
	require.False(t, hit(t, after, "long", five, 1))
	c.Advance(15 * time.Minute)
	require.Zero(t, load(t, memstore.Config{Now: c.Now}, data).Stats().Keys)
}

// Nobody is set free, and nobody is kept for longer than he had left.
func TestAClockThatWentBackBetween(t *testing.T) {
	c := newClock()
	before := memstore.New(memstore.Config{Now: c.Now})
	require.True(t, hit(t, before, "k", five, 5))
	data := saved(t, before)
	back := testkit.NewClock(c.Now().Add(-365 * 24 * time.Hour))
	after := load(t, memstore.Config{Now: back.Now}, data)
	require.False(t, hit(t, after, "k", five, 1))
	back.Advance(15 * time.Minute)
	require.True(t, hit(t, after, "k", five, 5))

	after = load(t, memstore.Config{Now: back.Now}, data)
	back.Advance(15*time.Minute + time.Second)
	after.Sweep()
	require.Zero(t, after.Stats().Keys, "a key that was never asked about again goes, too")
}

// One wrong bit, one missing byte or one too many, and there is no store.
func TestWhatIsDamagedIsNotLoaded(t *testing.T) {
	c := newClock()
	before := memstore.New(memstore.Config{MaxBytes: 128 << 10, Now: c.Now})
	for i := range 3 {
		hit(t, before, fmt.Sprint(i), five, int64(1+2*i))
	}
	data := saved(t, before)
	refused := func(data []byte) {
		t.Helper()
		s, err := memstore.Load(memstore.Config{MaxBytes: 128 << 10, Now: c.Now}, bytes.NewReader(data))
		require.ErrorIs(t, err, memstore.ErrSaved)
		require.Nil(t, s)
	}
	for i := range data {
		refused(data[:i])
		for bit := range 8 {
			wrong := bytes.Clone(data)
			wrong[i] ^= 1 << bit
			refused(wrong)
		}
	}
	refused(append(bytes.Clone(data), 0))
	refused(append(bytes.Clone(data), data...))

	torn := errors.New("torn")
	_, err := memstore.Load(memstore.Config{}, io.MultiReader(bytes.NewReader(data[:70]), failing{torn}))
	require.ErrorIs(t, err, torn)
	require.NotErrorIs(t, err, memstore.ErrSaved, "the file may be good")
	require.ErrorIs(t, before.Save(failing{torn}), torn)
}

type failing struct{ error }

func (f failing) Read([]byte) (int, error)  { return 0, f.error }
func (f failing) Write([]byte) (int, error) { return 0, f.error }

func TestNoKeyIsSavedAsText(t *testing.T) {
	s := memstore.New(memstore.Config{})
	hit(t, s, "somebody@example.com", five, 1)
	require.NotContains(t, string(saved(t, s)), "somebody")
}

// What is saved while others charge is whole, and has all that was charged before.
func TestSavingBesideCharges(t *testing.T) {
	s := memstore.New(memstore.Config{})
	for i := range 2_000 {
		require.True(t, hit(t, s, fmt.Sprint("before", i), five, 5))
	}
	var others sync.WaitGroup
	for g := range 4 {
		others.Go(func() {
			for i := range 5_000 {
				_, _ = s.Take(ctx, []limiter.Charge{
					{Key: fmt.Sprint(g, "/", i), Limit: five, Ask: limiter.Ask{Cost: 1}},
					{Key: fmt.Sprint("all", i%9), Limit: allLaws[5], Ask: limiter.Ask{Cost: 1}},
				})
			}
		})
	}
	var all [][]byte
	for range 10 {
		all = append(all, saved(t, s))
	}
	others.Wait()
	for _, data := range all {
		after := load(t, memstore.Config{}, data)
		for i := range 2_000 {
			require.False(t, hit(t, after, fmt.Sprint("before", i), five, 1))
		}
	}
}

const sumBytes = sha256.Size

func sealed(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(bytes.Clone(body), sum[:]...)
}

// Nothing that is read panics or takes more memory than the store may have, and
// what is loaded can be saved.
func FuzzLoad(f *testing.F) {
	c := newClock()
	s := memstore.New(memstore.Config{MaxBytes: 128 << 10, Now: c.Now})
	f.Add(saved(f, s), true)
	for i, l := range allLaws {
		_, err := s.Take(ctx, []limiter.Charge{{Key: fmt.Sprint(i), Limit: l, Ask: limiter.Ask{Cost: 1, Member: limiter.Member("m")}}})
		require.NoError(f, err)
	}
	f.Add(saved(f, s), false)
	f.Add(saved(f, s), true)
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal && len(data) >= sumBytes { // so that what precedes the checksum is believed
			data = sealed(data[:len(data)-sumBytes])
		}
		got, err := memstore.Load(memstore.Config{MaxBytes: 128 << 10, Now: c.Now}, bytes.NewReader(data))
		if err != nil {
			require.ErrorIs(t, err, memstore.ErrSaved)
			require.Nil(t, got)
			return
		}
		require.LessOrEqual(t, got.Stats().Bytes, 128<<10)
		for i, l := range allLaws {
			_, _ = got.Take(ctx, []limiter.Charge{{Key: fmt.Sprint(i), Limit: l, Ask: limiter.Ask{Cost: 1, Member: limiter.Member("m")}}})
		}
		load(t, memstore.Config{MaxBytes: 128 << 10, Now: c.Now}, saved(t, got))
	})
}
