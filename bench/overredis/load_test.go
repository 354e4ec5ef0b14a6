package overredis

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/stretchr/testify/require"

	"authguard/bench/server"
)

func start(t *testing.T) *server.Server {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("CI") == "" {
		t.Skip("redis-server is not installed")
	}
	s, err := server.Start()
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

func TestALoadEndsWithAWrongAnswer(t *testing.T) {
	s := start(t)
	yes := func(int) (bool, error) { return true, nil }
	third := func(n int) (bool, error) { return n != 2, nil }
	broken := errors.New("broken")
	fails := func(n int) (bool, error) { return true, broken }

	_, err := load(s, time.Millisecond, true, []check{yes, third})
	require.EqualError(t, err, "check 2 of a caller: admitted is false, want true")
	_, err = load(s, time.Millisecond, false, []check{yes})
	require.EqualError(t, err, "check 0 of a caller: admitted is true, want false")
	_, err = load(s, time.Millisecond, true, []check{fails, yes})
	require.ErrorIs(t, err, broken)
	sample, err := load(s, 10*time.Millisecond, true, []check{yes, yes})
	require.NoError(t, err)
	require.Positive(t, sample[string(Rate)])
}

// All admit five with each key and refuse the sixth, the sorted set included.
func TestChecksOverRedisAreExact(t *testing.T) {
	s := start(t)
	client, err := s.Client(1)
	require.NoError(t, err)
	defer client.Close()
	stores, err := together(client, 1)
	require.NoError(t, err)
	sha, err := scriptOf(s)
	require.NoError(t, err)
	require.NoError(t, textbook.Load(t.Context(), client).Err())

	sixes := pace{id: func(n int) int { return n / (fives + 1) }}
	for name, ask := range map[string]check{
		"ours":       ours(stores[0], three, 1, sixes),
		"redis_rate": sequentially(redis_rate.NewLimiter(client), rates, 2, sixes),
		"pipelined":  pipelined(client, sha, rates, 3, sixes),
		"sorted set": sortedSet(client, window, 4, sixes),
	} {
		for n := range 3 * (fives + 1) {
			admitted, err := ask(n)
			require.NoError(t, err, name)
			require.Equal(t, n%(fives+1) < fives, admitted, "%s, check %d", name, n)
		}
	}
}

func TestKeysAreAsLongAsTheGuards(t *testing.T) {
	require.Equal(t, "ag:{0000000100000203}a1234567", key('a', 1, 515))
}
