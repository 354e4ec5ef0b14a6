package clients

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// try is one request of a client and its answer, as the wire saw them.
type try struct {
	came, answered time.Time
	status         int
	retryAfter     string
}

func (t try) String() string { return fmt.Sprintf("%d (Retry-After: %s)", t.status, t.retryAfter) }

// wire stands between a client and the demo, changes nothing, and writes down what
// passes: what a client did is not asked of the client.
type wire struct {
	url string

	mu    sync.Mutex
	tries []try
}

// newWire is a wire to the service at target. Just before it passes the first
// request on, it calls spend, which uses the budget up.
func newWire(t *testing.T, target string, spend func()) *wire {
	t.Helper()
	u, err := url.Parse(target)
	require.NoError(t, err)
	w := new(wire)
	var once sync.Once
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) },
		ModifyResponse: func(resp *http.Response) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			last := &w.tries[len(w.tries)-1] // a client sends one request at a time
			last.answered, last.status, last.retryAfter = time.Now(), resp.StatusCode, resp.Header.Get("Retry-After")
			return nil
		},
	}
	srv := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.mu.Lock()
		w.tries = append(w.tries, try{came: time.Now()})
		w.mu.Unlock()
		once.Do(spend)
		proxy.ServeHTTP(rw, r)
	}))
	t.Cleanup(srv.Close)
	w.url = srv.URL
	return w
}

// passed is what has passed.
func (w *wire) passed() []try {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]try(nil), w.tries...)
}
