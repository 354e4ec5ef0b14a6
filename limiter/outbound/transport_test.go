package outbound

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
	"authguard/limiter/memstore"
)

// server answers in the bubble's time; no socket is needed for that.
type server struct {
	mu      sync.Mutex
	start   time.Time
	arrived []time.Duration
	answer  func(n int) (int, string) // status and Retry-After of the n-th request
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.arrived = append(s.arrived, time.Since(s.start))
	if r.Body != nil {
		r.Body.Close()
	}
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}
	if s.answer != nil {
		var after string
		if resp.StatusCode, after = s.answer(len(s.arrived)); after != "" {
			resp.Header.Set("Retry-After", after)
		}
	}
	return resp, nil
}

func newClient(t *testing.T, s *server, limit limiter.Limit, change func(*Config)) *http.Client {
	t.Helper()
	s.start = time.Now()
	l, err := limiter.New(memstore.New(memstore.Config{}), limit)
	require.NoError(t, err)
	c := Config{Limiter: l, Base: s}
	if change != nil {
		change(&c)
	}
	transport, err := New(c)
	require.NoError(t, err)
	return &http.Client{Transport: transport}
}

func get(c *http.Client, url string) (int, error) {
	resp, err := c.Get(url)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

var tenASecond = limiter.LeakyBucket{Capacity: 50, Leak: 10, Per: time.Second}

func TestRequestsGoOutEvenly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		c := newClient(t, s, tenASecond, nil)
		var wg sync.WaitGroup
		for range 5 {
			wg.Go(func() {
				_, err := get(c, "http://api.test/")
				require.NoError(t, err)
			})
		}
		wg.Wait()
		ms := time.Millisecond
		require.Equal(t, []time.Duration{0, 100 * ms, 200 * ms, 300 * ms, 400 * ms}, s.arrived)
	})
}

func TestRetryAfterHoldsThatHostBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(n int) (int, string) {
			if n == 1 {
				return 429, "7"
			}
			return 200, ""
		}}
		c := newClient(t, s, tenASecond, nil)
		status, err := get(c, "http://API.test/")
		require.NoError(t, err)
		require.Equal(t, 429, status, "the answer reaches the caller; nothing is sent twice")
		_, err = get(c, "http://other.test/")
		require.NoError(t, err)
		_, err = get(c, "http://api.test/")
		require.NoError(t, err)
		require.Equal(t, []time.Duration{0, 0, 7 * time.Second}, s.arrived)
	})
}

func TestAPauseBeyondTheBoundIsAnErrorAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(int) (int, string) { return 503, "60" }}
		c := newClient(t, s, tenASecond, nil)
		_, err := get(c, "http://api.test/")
		require.NoError(t, err)
		_, err = get(c, "http://api.test/")
		require.ErrorIs(t, err, ErrNotSent)
		var held *HeldError
		require.ErrorAs(t, err, &held)
		require.Equal(t, time.Minute, held.Wait)
		require.Equal(t, "api.test", held.Key)
		require.Zero(t, time.Since(s.start))
		require.Len(t, s.arrived, 1)
	})
}

// A 429 that comes while others already wait their turn holds those back, too.
func TestAPauseReachesThoseWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{answer: func(n int) (int, string) {
			if n == 1 {
				return 429, "3"
			}
			return 200, ""
		}}
		c := newClient(t, s, limiter.LeakyBucket{Capacity: 5, Leak: 1, Per: time.Second}, nil)
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				_, err := get(c, "http://api.test/")
				require.NoError(t, err)
			})
		}
		wg.Wait()
		require.Len(t, s.arrived, 3)
		for _, at := range s.arrived[1:] {
			require.GreaterOrEqual(t, at, 3*time.Second)
		}
	})
}

func TestTheQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		slow := limiter.SlidingWindow{Limit: 1, Window: 10 * time.Second}
		c := newClient(t, s, slow, func(c *Config) { c.MaxWaiting = 2; c.MaxWait = 15 * time.Second })
		_, err := get(c, "http://api.test/")
		require.NoError(t, err)
		var sent, held atomic.Int64
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				switch _, err := get(c, "http://api.test/"); {
				case err == nil:
					sent.Add(1)
				case errors.Is(err, ErrNotSent):
					held.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 1, sent.Load())
		require.EqualValues(t, 9, held.Load(), "eight find two waiting, one would wait too long")
		require.Less(t, time.Since(s.start), 16*time.Second)
	})
}

type closer struct {
	io.Reader
	closed *atomic.Bool
}

func (c closer) Close() error { c.closed.Store(true); return nil }

func TestTheCallersContextCountsAndTheBodyIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &server{}
		c := newClient(t, s, limiter.LeakyBucket{Capacity: 2, Leak: 1, Per: 20 * time.Second}, nil)
		_, err := get(c, "http://api.test/")
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Second, cancel)
		closed := new(atomic.Bool)
		r, err := http.NewRequestWithContext(ctx, "POST", "http://api.test/", closer{strings.NewReader("x"), closed})
		require.NoError(t, err)
		_, err = c.Do(r)
		require.ErrorIs(t, err, context.Canceled)
		require.NotErrorIs(t, err, ErrNotSent)
		require.True(t, closed.Load())
		require.Len(t, s.arrived, 1)
	})
}

func TestKeysAreForgotten(t *testing.T) {
	s := &server{}
	c := newClient(t, s, limiter.TokenBucket{Capacity: 5, Refill: 5, Per: time.Second}, func(c *Config) {
		c.Key = func(r *http.Request) string { return r.URL.Path }
	})
	for i := range 5000 {
		_, err := get(c, "http://api.test/"+strings.Repeat("x", i))
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(c.Transport.(*Transport).keys), maxKeys)
}

func TestRetryAfterForms(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"0": 0, "5": 5 * time.Second, " 5 ": 5 * time.Second,
		"86401": maxPause, "99999999999999999999999": maxPause,
		"Thu, 01 Jan 2026 12:00:09 GMT":    10 * time.Second,
		"Thursday, 01-Jan-26 12:00:09 GMT": 10 * time.Second,
		"Thu, 01 Jan 2026 11:00:00 GMT":    0,
		"Fri, 31 Dec 9999 23:59:59 GMT":    maxPause,
		"Thu, 01 Jan 2099 11:00:00 GMT":    maxPause,
	} {
		got, ok := retryAfter(http.Header{"Retry-After": {value}}, now)
		require.True(t, ok, value)
		require.Equal(t, want, got, value)
	}
	for _, bad := range []string{"", "-1", "1.5", "soon", "1e3"} {
		_, ok := retryAfter(http.Header{"Retry-After": {bad}}, now)
		require.False(t, ok, bad)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	_, err := New(Config{})
	require.EqualError(t, err, "outbound: Config.Limiter is nil")
	l, err := limiter.New(memstore.New(memstore.Config{}), tenASecond)
	require.NoError(t, err)
	_, err = New(Config{Limiter: l, MaxWait: -1})
	require.EqualError(t, err, "outbound: Config.MaxWait is -1ns, want at least 0")
	_, err = New(Config{Limiter: l, MaxWaiting: -1})
	require.EqualError(t, err, "outbound: Config.MaxWaiting is -1, want at least 0")
	_, err = New(Config{Limiter: l})
	require.NoError(t, err)
}
