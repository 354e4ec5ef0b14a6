package clients

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter/memstore"
	"authguard/policies"
)

// dialects are those that tell something.
var dialects = []httpguard.Dialect{
	httpguard.XRateLimit, httpguard.Draft6, httpguard.Draft7, httpguard.Draft11, httpguard.Draft12,
}

// startEdge serves an action behind an edge that speaks a dialect, all requests by
// one key. The limits are counted by the clock now; nil means the usual one.
func startEdge(t *testing.T, dialect httpguard.Dialect, policy string, now func() time.Time) (url string) {
	t.Helper()
	limits, err := policies.Parse("policy", []byte(policy))
	require.NoError(t, err)
	g, err := guard.New(guard.Config{Store: memstore.New(memstore.Config{Now: now}), Secret: make([]byte, 32), Policies: limits})
	require.NoError(t, err)
	edge, err := httpguard.New(httpguard.Config{Guard: g, Fields: dialect})
	require.NoError(t, err)
	limit := edge.Limit(func(*http.Request) (guard.Attempt, bool) {
		return guard.Attempt{Action: limits[0].Action, APIKey: "k"}, true
	})
	srv := httptest.NewServer(limit(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "hello\n") })))
	t.Cleanup(srv.Close)
	return srv.URL
}

// answer is an answer's status and fields.
type answer struct {
	status int
	header http.Header
}

func get(t *testing.T, url string) answer {
	t.Helper()
	resp := request{URL: url, Method: "GET"}.send(t, http.DefaultClient)
	_, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	return answer{resp.StatusCode, resp.Header}
}
