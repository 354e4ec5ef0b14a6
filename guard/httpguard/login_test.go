package httpguard_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/guard/httpguard"
	"authguard/internal/testkit"
	"authguard/limiter"
	"authguard/limiter/memstore"
)

// site is a login behind an Edge.
type site struct {
	*httpguard.Edge
	guard *guard.Guard
	clock *testkit.Clock
	log   *testkit.Buffer
}

func newSite(t testing.TB, change func(*httpguard.Config), policies ...guard.Policy) *site {
	t.Helper()
	s := &site{clock: testkit.NewClock(start), log: new(testkit.Buffer)}
	if policies == nil {
		policies = []guard.Policy{{Action: "login", Rules: []guard.Rule{
			{Name: "account", By: guard.ByAccount, Counts: guard.Failures, Limits: per15m(5)},
			{Name: "ip", By: guard.ByIP, Limits: per15m(100)},
		}}}
	}
	var err error
	s.guard, err = guard.New(guard.Config{
		Store: memstore.New(memstore.Config{Now: s.clock.Now}), Secret: []byte("sixteen bytes or more"), Policies: policies, Now: s.clock.Now,
	})
	require.NoError(t, err)
	c := httpguard.Config{Guard: s.guard, Log: slog.New(slog.NewTextHandler(s.log, nil))}
	if change != nil {
		change(&c)
	}
	s.Edge, err = httpguard.New(c)
	require.NoError(t, err)
	return s
}

func per15m(n int64) []limiter.Limit {
	return []limiter.Limit{limiter.SlidingWindow{Limit: n, Window: 15 * time.Minute}}
}

// used is what stands charged to an account's rule and to an address's.
func (s *site) used(t testing.TB, account string) (ofAccount, ofAddress int64) {
	t.Helper()
	status, err := s.guard.Inspect(context.Background(), guard.Attempt{Action: "login", Account: account, IP: testPeer})
	require.NoError(t, err)
	return status[0].Used(), status[1].Used()
}

// testPeer is where httptest's requests come from.
var testPeer = httpguard.Peer(httptest.NewRequest("GET", "/", nil))

func post(h http.Handler, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", "/login", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const bob = `{"email":"Bob@example.com","password":"guess"}`

func TestTheAnswerSettlesTheAttempt(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
	}
	saying := func(code int, say func(*guard.Pass, context.Context) error) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			say(httpguard.PassFrom(r.Context()), r.Context())
			w.WriteHeader(code)
		}
	}
	for name, tt := range map[string]struct {
		handler            http.HandlerFunc
		account, addressed int64
		warns              bool
	}{
		"200":     {status(200), 0, 1, false},
		"204":     {status(204), 0, 1, false},
		"304":     {status(304), 0, 1, false},
		"a body":  {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "welcome") }, 0, 1, false},
		"a flush": {func(w http.ResponseWriter, _ *http.Request) { w.(http.Flusher).Flush(); w.WriteHeader(401) }, 0, 1, false},
		"early hints, then 401": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(401)
		}, 1, 1, false},
		"200, then 401": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x"); w.WriteHeader(401) }, 0, 1, false},

		"400": {status(400), 1, 1, false},
		"401": {status(401), 1, 1, false},
		"403": {status(403), 1, 1, false},
		"422": {status(422), 1, 1, false},
		// A framework may answer an error, or swallow a panic, further out.
		"nothing": {func(http.ResponseWriter, *http.Request) {}, 1, 1, true},
		// A redirect may be a yes or a no.
		"303": {status(303), 1, 1, true},
		// Nobody can tell whether the secret was compared before the fault.
		"500": {status(500), 1, 1, false},
		"503": {status(503), 1, 1, false},
		"a time limit": {http.TimeoutHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
		}), time.Millisecond, "").ServeHTTP, 1, 1, false},

		"303 and a success":      {saying(303, (*guard.Pass).Succeed), 0, 1, false},
		"303 and a failure":      {saying(303, (*guard.Pass).Fail), 1, 1, false},
		"200 and a failure":      {saying(200, (*guard.Pass).Fail), 1, 1, false},
		"500 before the compare": {saying(500, (*guard.Pass).Cancel), 0, 0, false},
		"503 without room":       {saying(503, (*guard.Pass).Shed), 0, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, nil)
			h := s.Guard("login", httpguard.Field("email"))(tt.handler)
			post(h, bob)
			post(h, bob)
			account, address := s.used(t, "bob@example.com")
			require.Equal(t, [2]int64{2 * tt.account, 2 * tt.addressed}, [2]int64{account, address})
			require.Equal(t, tt.warns, strings.Count(s.log.String(), "does not say how the attempt ended") == 1, s.log.String())
		})
	}
}

func TestAPanicCountsAsAFailure(t *testing.T) {
	s := newSite(t, nil)
	h := s.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(200)
		panic("a fault")
	}))
	require.PanicsWithValue(t, "a fault", func() { post(h, bob) })
	account, _ := s.used(t, "bob@example.com")
	require.EqualValues(t, 1, account)
}

// chi's Recoverer writes nothing about a panic where the client asks for an upgrade.
func TestAHeaderMakesNoSuccessOfAPanic(t *testing.T) {
	for _, connection := range []string{"Upgrade", "keep-alive, upgrade"} {
		s := newSite(t, nil)
		h := s.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			defer func() { require.NotNil(t, recover()) }() // as Recoverer does, without its log
			panic("a fault")
		}))
		post(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Header.Set("Connection", connection)
			h.ServeHTTP(w, r)
		}), bob)
		account, _ := s.used(t, "bob@example.com")
		require.EqualValues(t, 1, account, connection)
	}
}

// A client that hangs up gets no guess for free, whatever the handler says to
// nobody.
func TestHangingUpCountsAsAFailure(t *testing.T) {
	s := newSite(t, nil)
	ctx, hangUp := context.WithCancel(context.Background())
	h := s.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hangUp()
		<-r.Context().Done()
		w.WriteHeader(200)
	}))
	r := httptest.NewRequest("POST", "/login", strings.NewReader(bob)).WithContext(ctx)
	r.Header.Set("Content-Type", "application/json")
	h.ServeHTTP(httptest.NewRecorder(), r)
	account, _ := s.used(t, "bob@example.com")
	require.EqualValues(t, 1, account)
}

// MO-07, AC-08: the handler runs for attempts within the limits only, reads the
// body that was sent and looks up the account that was charged.
func TestTheHandlerGetsTheBodyAndTheAccount(t *testing.T) {
	s := newSite(t, nil)
	ran := 0
	h := s.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ran++
		var in struct{ Email, Password string }
		require.NoError(t, json.NewDecoder(r.Body).Decode(&in))
		require.Equal(t, "Bob@example.com", in.Email)
		require.Equal(t, "guess", in.Password)
		require.Equal(t, "bob@example.com", httpguard.PassFrom(r.Context()).Account)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	for range 5 {
		require.Equal(t, 401, post(h, bob).Code)
	}
	w := post(h, bob)
	require.Equal(t, 429, w.Code)
	require.Equal(t, "900", w.Header().Get("Retry-After"))
	require.Equal(t, 5, ran)

	form := httptest.NewRequest("POST", "/login", strings.NewReader("email=alice%40example.com&password=p"))
	form.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	s.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		require.Equal(t, "p", r.PostFormValue("password"))
		require.Equal(t, "alice@example.com", httpguard.PassFrom(r.Context()).Account)
	})).ServeHTTP(httptest.NewRecorder(), form)
	require.Nil(t, httpguard.PassFrom(context.Background()))
}

// No counter is told where nobody has proved who he is, not even one that other
// middleware has set.
func TestALoginTellsNoCounters(t *testing.T) {
	for _, d := range dialects {
		s := newSite(t, func(c *httpguard.Config) { c.Fields = d })
		h := s.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401) }))
		for i := range 6 {
			w := post(h, bob)
			require.Empty(t, told(w.Header()))
			require.Equal(t, i == 5, w.Header().Get("Retry-After") != "")
		}
		w := post(s.LimitAddress("login")(h), bob)
		require.Equal(t, 429, w.Code)
		require.Contains(t, w.Body.String(), `"login/account"`)
		require.Empty(t, told(w.Header()), "the address's window would end after Retry-After")
	}
}

// PR-01, AC-03: a body in which the account cannot be told for certain is refused
// without running the handler, and charged to the address, which it uses up.
func TestMalformedRequestsAreChargedToTheAddress(t *testing.T) {
	for name, tt := range map[string]struct {
		contentType, encoding, body string
		status                      int
	}{
		"twice":      {"application/json", "", `{"email":"a","email":"b"}`, 400},
		"array":      {"application/json", "", `{"email":["a","b"]}`, 400},
		"missing":    {"application/json", "", `{"password":"x"}`, 400},
		"form array": {"application/x-www-form-urlencoded", "", "email[]=a&email[]=b", 400},
		"too large":  {"application/json", "", `{"email":"` + strings.Repeat("a", 9000) + `"}`, 413},
		"multipart":  {"multipart/form-data; boundary=x", "", "", 415},
		"compressed": {"application/json", "gzip", `{"email":"a"}`, 415},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, nil)
			h := s.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("ran") }))
			for i := range 101 {
				r := httptest.NewRequest("POST", "/login", strings.NewReader(tt.body))
				r.Header.Set("Content-Type", tt.contentType)
				if tt.encoding != "" {
					r.Header.Set("Content-Encoding", tt.encoding)
				}
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if i == 100 {
					require.Equal(t, 429, w.Code)
					require.Contains(t, w.Body.String(), `"login/ip"`)
					break
				}
				require.Equal(t, tt.status, w.Code)
				require.Empty(t, w.Header().Get("Retry-After"))
				var p httpguard.Problem
				require.NoError(t, json.Unmarshal(w.Body.Bytes(), &p))
				require.Equal(t, "invalid_request", p.Error)
				require.NotEmpty(t, p.Detail)
			}
			_, address := s.used(t, "a")
			require.EqualValues(t, 100, address)
		})
	}
}

// Where only the account is counted, there is no address to charge.
func TestMalformedRequestsOfAnActionByAccountAreRefusedAllTheSame(t *testing.T) {
	s := newSite(t, nil, guard.Policy{Action: "login", Rules: []guard.Rule{{Name: "account", By: guard.ByAccount, Limits: per15m(5)}}})
	h := s.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("ran") }))
	for _, body := range []string{`{}`, `{"email":""}`, `{"email":"a\u0000b"}`} {
		require.Equal(t, 400, post(h, body).Code, body)
	}
	require.Empty(t, s.log.String(), "what a client typed is no mistake of the program")
}

// An OPTIONS is charged nothing, so a handler that looks at no method must not
// compare what comes with it.
func TestOptionsIsNeitherChargedNorHandled(t *testing.T) {
	s := newSite(t, nil)
	next := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("ran") })
	for _, h := range []http.Handler{
		s.Guard("login", httpguard.Field("email"))(next),
		s.LimitAddress("login")(next),
		s.Limit(func(*http.Request) (guard.Attempt, bool) { return guard.Attempt{Action: "login", Account: "bob"}, true })(next),
	} {
		r := httptest.NewRequest("OPTIONS", "/login", strings.NewReader(bob))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		require.Equal(t, 204, w.Code)
	}
	account, address := s.used(t, "bob@example.com")
	require.Zero(t, account+address)
}

// http.ResponseController and the old interfaces reach the server through the
// wrapper; whoever takes the connection over has not said yes.
func TestTheServersAbilitiesStay(t *testing.T) {
	s := newSite(t, nil)
	var done atomic.Int64
	srv := httptest.NewServer(s.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer done.Add(1)
		c := http.NewResponseController(w)
		if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Error(err)
		}
		hijack := w.(http.Hijacker).Hijack
		if done.Load() > 0 {
			hijack = c.Hijack
		}
		conn, _, err := hijack()
		if err != nil {
			t.Error(err)
			return
		}
		io.WriteString(conn, "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		conn.Close()
	})))
	defer srv.Close()
	for range 2 {
		resp, err := http.Post(srv.URL, "application/json", strings.NewReader(bob))
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, 401, resp.StatusCode)
	}
	require.Eventually(t, func() bool {
		status, err := s.guard.Inspect(context.Background(), guard.Attempt{Action: "login", Account: "bob@example.com"})
		return err == nil && status[0].Used() == 2 && done.Load() == 2
	}, 5*time.Second, 10*time.Millisecond)
	_, ok := any(httptest.NewRecorder()).(http.Hijacker)
	require.False(t, ok)
	post(s.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var c net.Conn
		c, _, err := w.(http.Hijacker).Hijack()
		require.Nil(t, c)
		require.ErrorIs(t, err, http.ErrNotSupported)
	})), bob)
}

// RC-01: of 200 guesses at one instant, through a server, five reach the handler.
func TestParallelGuessesReachTheHandlerFiveTimes(t *testing.T) {
	s := newSite(t, nil, guard.Policy{Action: "login", Rules: []guard.Rule{{Name: "account", By: guard.ByAccount, Counts: guard.Failures, Limits: per15m(5)}}})
	var ran atomic.Int64
	srv := httptest.NewServer(s.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		ran.Add(1)
		w.WriteHeader(401)
	})))
	defer srv.Close()
	answers := make(chan int, 200)
	for range 200 {
		go func() {
			resp, err := http.Post(srv.URL, "application/json", strings.NewReader(bob))
			if err != nil {
				answers <- 0
				return
			}
			resp.Body.Close()
			answers <- resp.StatusCode
		}()
	}
	count := map[int]int{}
	for range 200 {
		count[<-answers]++
	}
	require.Equal(t, map[int]int{401: 5, 429: 195}, count)
	require.EqualValues(t, 5, ran.Load())
}

func TestAnActionWithoutAPolicyIsReportedWhenItIsWiredUp(t *testing.T) {
	s := newSite(t, nil)
	h := s.Guard("logni", httpguard.Field("email"))(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("ran") }))
	require.Contains(t, s.log.String(), `no policy for this action: \"logni\"`)
	for range 3 {
		require.Equal(t, 500, post(h, bob).Code)
	}
	require.Equal(t, 1, strings.Count(s.log.String(), "logni"), "once")
}

// LK-01: a login that is wrapped knows the owner's devices by their cookie.
func TestGuardTellsDevicesByTheirCookie(t *testing.T) {
	account := guard.Account{ID: "17"}
	g, err := guard.New(guard.Config{
		Store: memstore.New(memstore.Config{}), Secret: []byte("sixteen bytes or more"),
		Resolve: func(context.Context, string) (guard.Account, error) { return account, nil },
		Policies: []guard.Policy{{Action: "login", Rules: []guard.Rule{
			{Name: "account", By: guard.ByAccount, Clients: guard.UntrustedClients, Limits: per15m(5)},
			{Name: "device", By: guard.ByDevice, Clients: guard.TrustedClients, Limits: per15m(5)},
		}}},
	})
	require.NoError(t, err)
	cookie, _, err := g.TrustDevice(account, "")
	require.NoError(t, err)
	edge, err := httpguard.New(httpguard.Config{Guard: g, DeviceCookie: "device"})
	require.NoError(t, err)
	h := edge.Guard("login", httpguard.Field("email"))(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
	}))
	send := func(name string) (statuses []int) {
		for range 6 {
			r := httptest.NewRequest("POST", "/login", strings.NewReader(bob))
			r.Header.Set("Content-Type", "application/json")
			r.AddCookie(&http.Cookie{Name: name, Value: cookie})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			statuses = append(statuses, w.Code)
		}
		return statuses
	}
	want := []int{401, 401, 401, 401, 401, 429}
	require.Equal(t, want, send("another"), "strangers spend theirs")
	require.Equal(t, want, send("device"), "and the device its own")
}
