package clients

import (
	"fmt"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/internal/testkit"
)

const fivePer15m = "api: {key: {by: api_key, limit: 5 per 15m}}\n"

// One trace in every dialect, to be looked at: five requests are admitted, 20 s
// apart, and the sixth is refused. The page shows the same.
func TestOneTraceInEveryDialect(t *testing.T) {
	text, err := os.ReadFile("../docs/clients.md")
	require.NoError(t, err)
	page := string(text)
	for _, dialect := range dialects {
		clock := testkit.NewClock(time.Unix(1_800_000_000, 0))
		url := startEdge(t, dialect, fivePer15m, clock.Now)
		shown := fmt.Sprintf("%v\n", dialect)
		for i := range 6 {
			a := get(t, url)
			switch i {
			case 0:
				require.Equal(t, http.StatusOK, a.status)
				shown += "  200 at 0 s\n" + lines(a.header)
			case 5:
				require.Equal(t, http.StatusTooManyRequests, a.status)
				shown += "  429 at 100 s\n" + lines(a.header)
			}
			clock.Advance(20 * time.Second)
		}
		fmt.Println(shown)
		assert.Contains(t, page, shown)
	}
}

// lines are the fields that tell of limits.
func lines(h http.Header) (text string) {
	for _, name := range []string{
		"Retry-After", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset",
		"RateLimit-Policy", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "RateLimit",
	} {
		for _, v := range h.Values(name) {
			text += "    " + name + ": " + v + "\n"
		}
	}
	return text
}
