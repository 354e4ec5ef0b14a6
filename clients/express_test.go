package clients

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/stretchr/testify/require"

	"authguard/guard/httpguard"
)

// The trace of the comparison: two requests, a pause, and five more of four that
// are admitted in a window.
const (
	peerLimit  = 4
	peerWindow = 20 * time.Second
	peerPause  = 3 * time.Second
)

// startExpress starts express-rate-limit with the trace's limit. It ends with the
// test.
func startExpress(t *testing.T) (url string) {
	t.Helper()
	cmd := exec.Command("node", "js/express.js", fmt.Sprint(peerLimit), fmt.Sprint(peerWindow.Milliseconds()))
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	cmd.Stderr = os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		stdin.Close()
		require.NoError(t, cmd.Wait())
	})
	port, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err, "js/express.js does not start")
	return "http://127.0.0.1:" + strings.TrimSpace(port)
}

// meaning is what an answer tells, however it is written. Seconds are from now.
type meaning struct {
	status, limit, window, remaining int64
	reset, retryAfter                int64
}

// The same trace through an edge and through express-rate-limit means the same, in
// every dialect that both speak. Its windows begin with the first request, so ours
// is one of a clock that is set to begin it then.
func TestExpressRateLimitMeansTheSame(t *testing.T) {
	express := startExpress(t)
	policy := fmt.Sprintf("api: {key: {by: api_key, fixed: %d per %v}}\n", peerLimit, peerWindow)
	t.Run("dialects", func(t *testing.T) {
		for dialect, path := range map[httpguard.Dialect]string{
			httpguard.XRateLimit: "/x",
			httpguard.Draft6:     "/draft-6",
			httpguard.Draft7:     "/draft-7",
			httpguard.Draft11:    "/draft-8",
		} {
			t.Run(dialect.String(), func(t *testing.T) {
				t.Parallel()
				begin := time.Now()
				ahead := peerWindow - time.Duration(begin.UnixNano())%peerWindow
				edge := startEdge(t, dialect, policy, func() time.Time { return time.Now().Add(ahead) })
				var late time.Duration // by which the first request came after its window began
				for i := range 7 {
					if i == 2 {
						time.Sleep(peerPause)
					}
					sent := time.Now()
					a, b := get(t, edge), get(t, express+path)
					ours, theirs := means(t, dialect, a, ahead), means(t, dialect, b, 0)
					if i == 0 {
						late = time.Since(begin)
					}
					// Both round up, and on a busy machine one is asked later than the other.
					slack := (time.Second + late + time.Since(sent)).Seconds()
					require.InDelta(t, theirs.reset, ours.reset, slack, "answer %d:\n%v\n%v", i+1, a, b)
					require.InDelta(t, theirs.retryAfter, ours.retryAfter, slack, "answer %d:\n%v\n%v", i+1, a, b)
					theirs.reset, theirs.retryAfter = ours.reset, ours.retryAfter
					require.Equal(t, theirs, ours, "answer %d:\n%v\n%v", i+1, a, b)
				}
			})
		}
	})
}

// means reads an answer of a server whose clock is ahead.
func means(t *testing.T, d httpguard.Dialect, a answer, ahead time.Duration) meaning {
	t.Helper()
	m := meaning{status: int64(a.status)}
	whole := func(name string) int64 {
		n, err := strconv.ParseInt(a.header.Get(name), 10, 64)
		require.NoError(t, err, name)
		return n
	}
	if a.status == 429 {
		m.retryAfter = whole("Retry-After")
	}
	if d == httpguard.XRateLimit {
		now := time.Now().Add(ahead)
		m.limit, m.remaining = whole("X-RateLimit-Limit"), whole("X-RateLimit-Remaining")
		m.reset = int64(time.Unix(whole("X-RateLimit-Reset"), 0).Sub(now).Round(time.Second).Seconds())
		return m
	}
	policy := theItem(t, a.header.Values("RateLimit-Policy"))
	m.window = number(t, policy.Params, "w")
	switch d {
	case httpguard.Draft6:
		m.limit, m.remaining, m.reset = whole("RateLimit-Limit"), whole("RateLimit-Remaining"), whole("RateLimit-Reset")
		require.Equal(t, m.limit, policy.Value)
	case httpguard.Draft7:
		dictionary, err := httpsfv.UnmarshalDictionary(a.header.Values("RateLimit"))
		require.NoError(t, err)
		member := func(key string) int64 {
			v, ok := dictionary.Get(key)
			require.True(t, ok, key)
			return v.(httpsfv.Item).Value.(int64)
		}
		m.limit, m.remaining, m.reset = member("limit"), member("remaining"), member("reset")
		require.Equal(t, m.limit, policy.Value)
	default:
		state := theItem(t, a.header.Values("RateLimit"))
		require.Equal(t, policy.Value, state.Value, "both have the policy's name")
		m.limit, m.remaining, m.reset = number(t, policy.Params, "q"), number(t, state.Params, "r"), number(t, state.Params, "t")
	}
	return m
}

// theItem is the one item of a list.
func theItem(t *testing.T, values []string) httpsfv.Item {
	t.Helper()
	list, err := httpsfv.UnmarshalList(values)
	require.NoError(t, err)
	require.Len(t, list, 1)
	return list[0].(httpsfv.Item)
}

func number(t *testing.T, p *httpsfv.Params, key string) int64 {
	t.Helper()
	require.True(t, slices.Contains(p.Names(), key), key)
	v, _ := p.Get(key)
	return v.(int64)
}
