package clients

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard/httpguard"
)

// ratelimit-header-parser finds out by itself what it reads, and reads what we
// meant. It knows no later drafts.
func TestAReaderOfOldDialectsReadsThem(t *testing.T) {
	for _, dialect := range []httpguard.Dialect{httpguard.XRateLimit, httpguard.Draft6, httpguard.Draft7} {
		url := startEdge(t, dialect, fivePer15m, nil)
		var headers []map[string]string
		start := time.Now()
		for i := range 7 {
			a := get(t, url)
			require.Equal(t, i >= 5, a.status == http.StatusTooManyRequests)
			flat := map[string]string{}
			for name := range structured(dialect, a) {
				flat[name] = a.header.Get(name)
			}
			headers = append(headers, flat)
		}
		asked := time.Since(start).Seconds()

		var read []struct {
			Limit, Used, Remaining int
			Reset, Before, After   float64 // of reading
		}
		node(t, "read.js", headers, &read)
		require.Len(t, read, len(headers))
		for i, r := range read {
			require.Equal(t, []int{5, min(5, i+1), max(0, 4-i)}, []int{r.Limit, r.Used, r.Remaining}, "%v: answer %d", dialect, i+1)
			switch {
			case dialect == httpguard.XRateLimit: // an instant: it is the same whenever it is read
				told, err := strconv.ParseFloat(headers[i]["X-Ratelimit-Reset"], 64)
				require.NoError(t, err)
				require.Equal(t, told, r.Reset)
				from := float64(start.UnixMicro())/1e6 + 900
				require.GreaterOrEqual(t, r.Reset, from-1e-3)
				require.LessOrEqual(t, r.Reset, from+asked+1)
			default: // seconds from when it is read
				require.GreaterOrEqual(t, r.Reset-r.Before, 900-asked-1e-2)
				require.LessOrEqual(t, r.Reset-r.After, 900+1e-2)
			}
		}
	}
}
