package httpguard_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

type keyID struct{}

// authenticate puts the id of a good key into the context, and refuses others.
func authenticate(next http.Handler) http.Handler {
	ids := map[string]string{"good": "17", "better": "18", "paid": "pro-19"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := ids[r.Header.Get("X-API-Key")]
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), keyID{}, id)))
	})
}

// byKey charges the key that was authenticated: cost units, by its tier's policy.
func byKey(cost int64) func(*http.Request) (guard.Attempt, bool) {
	return func(r *http.Request) (guard.Attempt, bool) {
		id, ok := r.Context().Value(keyID{}).(string)
		action := "api"
		if strings.HasPrefix(id, "pro-") {
			action = "api_pro"
		}
		return guard.Attempt{Action: action, APIKey: id, Cost: cost}, ok
	}
}

// codes are the statuses of n requests with a key.
func codes(h http.Handler, method, path, key string, n int) string {
	var all []string
	for range n {
		r := httptest.NewRequest(method, path, nil)
		r.Header.Set("X-API-Key", key)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		all = append(all, strconv.Itoa(w.Code))
	}
	return strings.Join(all, " ")
}

func apiPolicies() []guard.Policy {
	rule := func(name string, by guard.By, n int64) []guard.Rule {
		return []guard.Rule{{Name: name, By: by, Limits: per15m(n)}}
	}
	door := rule("ip", guard.ByIP, 2)
	door[0].Counts = guard.Failures
	return []guard.Policy{
		{Action: "api", Rules: rule("key", guard.ByAPIKey, 3)},
		{Action: "api_pro", Rules: rule("key", guard.ByAPIKey, 6)},
		{Action: "door", Rules: door},
	}
}

// MO-01, MO-02, MO-03: behind the authentication each key is counted as itself
// and by its tier, in front of it bad keys are counted by address; a limit that
// stands in the wrong place is a fault that is seen at once and charged to nobody.
func TestALimitInTheWrongPlaceChargesNobodyElse(t *testing.T) {
	stack := func(wrong bool) (http.Handler, *site) {
		s := newSite(t, nil, apiPolicies()...)
		r := chi.NewRouter()
		if wrong {
			r.Use(s.Limit(byKey(1)), authenticate)
		} else {
			r.Use(s.LimitAddress("door"), authenticate, s.Limit(byKey(1)))
		}
		r.Get("/", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) })
		return r, s
	}
	h, s := stack(false)
	require.Equal(t, "200 200 200 429", codes(h, "GET", "/", "good", 4))
	require.Equal(t, "200 200 200", codes(h, "GET", "/", "better", 3), "a key of its own")
	require.Equal(t, "200 200 200 200 200 200", codes(h, "GET", "/", "paid", 6), "a tier of its own")
	// The door has counted one refusal as a failure, and lets one more through.
	require.Equal(t, "401 429 429", codes(h, "GET", "/", "bad", 3))
	for _, id := range []string{"17", "18"} {
		status, err := s.guard.Inspect(context.Background(), guard.Attempt{Action: "api", APIKey: id})
		require.NoError(t, err)
		require.EqualValues(t, 3, status[0].Used(), "counted under the id that was authenticated")
	}
	require.Empty(t, s.log.String())

	h, s = stack(true)
	require.Equal(t, "500 500 500 500 500", codes(h, "GET", "/", "good", 5))
	require.Equal(t, 1, strings.Count(s.log.String(), "it must stand behind the authentication"))
	status, err := s.guard.Inspect(context.Background(), guard.Attempt{Action: "api", APIKey: "17"})
	require.NoError(t, err)
	require.Zero(t, status[0].Used())

	// An identity that says it is there, and is empty.
	empty := s.Limit(func(*http.Request) (guard.Attempt, bool) { return guard.Attempt{Action: "api"}, true })(http.NotFoundHandler())
	require.Equal(t, "500 500", codes(empty, "GET", "/", "good", 2))
	require.Equal(t, 1, strings.Count(s.log.String(), "api/key counts by api_key"))
}

// MC-05: only declared routes are charged, each its cost.
func TestEachRouteHasItsCost(t *testing.T) {
	s := newSite(t, nil, apiPolicies()...)
	ok := func(http.ResponseWriter, *http.Request) {}
	r := chi.NewRouter()
	r.Get("/icon", ok)
	r.With(authenticate, s.Limit(byKey(1))).Get("/quote", ok)
	r.With(authenticate, s.Limit(byKey(2))).Get("/export", ok)
	r.With(authenticate, s.Limit(byKey(4))).Get("/all", ok)
	require.NotContains(t, codes(r, "GET", "/icon", "good", 20), "429")
	require.Equal(t, "200", codes(r, "GET", "/export", "good", 1))
	require.Equal(t, "429", codes(r, "GET", "/export", "good", 1))
	require.Equal(t, "200 429", codes(r, "GET", "/quote", "good", 2))
	require.Equal(t, "400", codes(r, "GET", "/all", "good", 1), "AL-09: no wait would help")
	require.Equal(t, "405", codes(r, "POST", "/quote", "good", 1))

	mux := http.NewServeMux() // plain net/http
	mux.Handle("GET /quote", authenticate(s.Limit(byKey(1))(http.HandlerFunc(ok))))
	require.Equal(t, "200 200 200 429", codes(mux, "GET", "/quote", "better", 4))
}

// An address's counters are shown to whoever comes from it, an account's or a
// key's only to whom they belong.
func TestAnAddressIsToldOfAddressRulesAlone(t *testing.T) {
	s := newSite(t, func(c *httpguard.Config) { c.Fields = httpguard.Draft11 }, guard.Policy{Action: "api", Rules: []guard.Rule{
		{Name: "wide", By: guard.IPPrefix(48), Limits: per15m(9)},
		{Name: "ip", By: guard.ByIP, Limits: per15m(2)},
		{Name: "all", By: guard.Global, Limits: per15m(50)},
	}})
	h := s.LimitAddress("api")(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w := post(h, "")
	require.Equal(t, "RateLimit-Policy: \"api/wide\";q=9;w=900, \"api/ip\";q=2;w=900\nRateLimit: \"api/wide\";r=8;t=900, \"api/ip\";r=1;t=900\n", told(w.Header()))
	post(h, "")
	w = post(h, "")
	require.Equal(t, 429, w.Code)
	require.Contains(t, told(w.Header()), `"api/ip";r=0;t=900`)
	require.NotContains(t, told(w.Header()), "api/all")

	owner := s.Limit(func(*http.Request) (guard.Attempt, bool) { return guard.Attempt{Action: "api"}, true })(h)
	require.Contains(t, told(post(owner, "").Header()), "api/all")
}

// The body of a refused request is not read.
func TestAnAddressIsLimitedBeforeTheBodyIsRead(t *testing.T) {
	s := newSite(t, nil, apiPolicies()...)
	h := s.LimitAddress("door")(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }))
	for i := range 3 {
		r := httptest.NewRequest("POST", "/", unread{t})
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, []int{401, 401, 429}[i], w.Code)
	}
}

type unread struct{ testing.TB }

func (u unread) Read([]byte) (int, error) {
	u.Error("the body was read")
	return 0, http.ErrBodyReadAfterClose
}

// queued is an API of ten calls a second, ten of which may queue.
func queued(t *testing.T, change func(*httpguard.Config)) (http.Handler, func() int64) {
	g, err := guard.New(guard.Config{
		Store: memstore.New(memstore.Config{Now: time.Now}), Secret: []byte("sixteen bytes or more"), Now: time.Now,
		Policies: []guard.Policy{{Action: "api", Rules: []guard.Rule{{Name: "queue", By: guard.Global, Limits: []limiter.Limit{
			limiter.LeakyBucket{Capacity: 10, Leak: 10, Per: time.Second}}}}}},
	})
	require.NoError(t, err)
	c := httpguard.Config{Guard: g}
	if change != nil {
		change(&c)
	}
	e, err := httpguard.New(c)
	require.NoError(t, err)
	used := func() int64 {
		status, err := g.Inspect(context.Background(), guard.Attempt{Action: "api"})
		require.NoError(t, err)
		return status[0].Used()
	}
	return e.LimitAddress("api")(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), used
}

func TestAQueuedRequestWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := queued(t, nil)
		begin := time.Now()
		var mu sync.Mutex
		served := map[time.Duration]int{}
		var wg sync.WaitGroup
		for range 15 {
			wg.Go(func() {
				w := post(h, "")
				mu.Lock()
				defer mu.Unlock()
				if w.Code == 429 {
					served[-1]++
					return
				}
				served[time.Since(begin)]++
			})
		}
		wg.Wait()
		want := map[time.Duration]int{-1: 5}
		for i := range 10 {
			want[time.Duration(i)*100*time.Millisecond] = 1
		}
		require.Equal(t, want, served)
	})
}

// Who waits no longer gives the place back: the client that went, and the one
// for whom there is no room or no time.
func TestAPlaceInTheQueueIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, used := queued(t, func(c *httpguard.Config) { c.Waiting, c.LongestWait = 3, 450*time.Millisecond })
		ask := func(ctx context.Context) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil).WithContext(ctx))
			return w
		}
		require.Equal(t, 200, ask(t.Context()).Code) // its turn is at once

		ctx, goAway := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() { defer close(gone); ask(ctx) }()
		synctest.Wait()
		require.EqualValues(t, 2, used())
		goAway()
		<-gone
		require.EqualValues(t, 1, used())

		soon, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		w := ask(soon)
		require.Equal(t, 503, w.Code, "its turn comes after its deadline")
		require.Equal(t, "1", w.Header().Get("Retry-After"))
		require.Empty(t, told(w.Header()))
		require.EqualValues(t, 1, used())

		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 9 {
			wg.Go(func() {
				if ask(t.Context()).Code == 503 {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		require.EqualValues(t, 6, refused.Load(), "three wait")
		require.EqualValues(t, 4, used())
		wg.Wait()
	})
}

func TestALongWaitIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, used := queued(t, func(c *httpguard.Config) { c.LongestWait = 250 * time.Millisecond })
		var wg sync.WaitGroup
		var refused atomic.Int64
		for range 8 {
			wg.Go(func() {
				if post(h, "").Code == 503 {
					refused.Add(1)
				}
			})
		}
		wg.Wait()
		require.EqualValues(t, 5, refused.Load(), "turns at 0, 100 and 200 ms")
		require.LessOrEqual(t, used(), int64(1))
	})
}

func TestNewNamesWhatIsWrong(t *testing.T) {
	g := newSite(t, nil).guard
	for want, c := range map[string]httpguard.Config{
		"Config.Guard is nil":                  {},
		"Config.Fields is Dialect(6)":          {Guard: g, Fields: 6},
		"Config.Waiting is -1":                 {Guard: g, Waiting: -1},
		"Config.LongestWait is -1s, want at l": {Guard: g, LongestWait: -time.Second},
	} {
		_, err := httpguard.New(c)
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, "draft12", httpguard.Draft12.String())
	require.Equal(t, "x", httpguard.Dialect(0).String())
}
