package authdemo

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"authguard/authdemo/accounts"
	"authguard/guard/httpguard"
)

// using is a client that has nothing but an API key.
func (w *world) using(key string) *client {
	c := w.from("198.51.100.9")
	c.header.Set("Authorization", "Bearer "+key)
	return c
}

func rateLimit(rec *httptest.ResponseRecorder) [2]string {
	return [2]string{rec.Header().Get("X-RateLimit-Limit"), rec.Header().Get("X-RateLimit-Remaining")}
}

func TestATierIsChosenWithTheKey(t *testing.T) {
	const form = "application/x-www-form-urlencoded"
	for _, tt := range []struct {
		contentType, body string
		want              accounts.Tier // "" is 400
	}{
		{"", "", accounts.Free},
		{"application/json", "", accounts.Free},
		{form, "", accounts.Free},
		{"application/json", `{}`, accounts.Free},
		{"application/json", `{"tier":"free"}`, accounts.Free},
		{"application/json", `{"tier":"pro"}`, accounts.Pro},
		{form, "tier=free", accounts.Free},
		{form, "tier=pro", accounts.Pro},
		{"application/json", `{"tier":"gold"}`, ""},
		{"application/json", `{"tier":"PRO"}`, ""},
		{"application/json", `{"tier":""}`, ""},
		{"application/json", `{"tier":["pro"]}`, ""},
		{"application/json", `{"tier":"free","tier":"pro"}`, ""},
		{"application/json", `{"tier":"pro","account":"1"}`, ""},
		{form, "tier=free&tier=pro", ""},
		{form, "tier=", ""},
	} {
		w := newWorld(t).withOwner()
		c := w.loggedIn("198.51.100.9")
		rec := c.send(http.MethodPost, "/api/keys?tier=pro", tt.contentType, tt.body)
		if tt.want == "" {
			require.Equal(t, http.StatusBadRequest, rec.Code, tt.body)
			require.Contains(t, rec.Body.String(), "invalid_request")
			continue
		}
		require.Equal(t, http.StatusCreated, rec.Code, tt.body)
		var body struct{ Key string }
		decode(t, rec, &body)
		key, err := w.svc.accounts.ByKey(t.Context(), body.Key)
		require.NoError(t, err)
		require.Equal(t, tt.want, key.Tier, tt.body)
	}
	c := newWorld(t).withOwner().loggedIn("198.51.100.9")
	require.Equal(t, http.StatusUnsupportedMediaType, c.send(http.MethodPost, "/api/keys", "", "tier=pro").Code)
	require.Equal(t, http.StatusUnsupportedMediaType, c.send(http.MethodPost, "/api/keys", "text/plain", "tier=pro").Code)

	rec := c.accepting(browser).postForm("/api/keys", "tier", "gold")
	require.Equal(t, http.StatusBadRequest, rec.Code)
	require.Contains(t, rec.Body.String(), "Tier must be free or pro.")
	require.Contains(t, rec.Body.String(), `name="tier" value="pro"`)
}

func TestEachTierHasItsOwnLimits(t *testing.T) {
	w := newWorld(t).withOwner()
	session := w.loggedIn("198.51.100.9")
	free, pro := w.using(session.newKey()), w.using(session.newKey("tier", "pro"))
	for i := range 100 {
		rec := pro.get("/api/quote")
		require.Equal(t, http.StatusOK, rec.Code)
		require.Equal(t, [2]string{"100", fmt.Sprint(99 - i)}, rateLimit(rec))
	}
	rec := pro.get("/api/quote")
	require.Equal(t, http.StatusTooManyRequests, rec.Code)
	require.Contains(t, rec.Body.String(), `"api_pro/key"`)
	require.Equal(t, [2]string{"10", "9"}, rateLimit(free.get("/api/quote")), "the free key of the same owner is none of it")
	w.advance(time.Second)
	for range 10 {
		require.Equal(t, http.StatusOK, pro.get("/api/quote").Code)
	}
	require.Equal(t, http.StatusTooManyRequests, pro.get("/api/quote").Code)
}

func TestAnExportCostsMoreThanAFreeKeyHas(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.using(w.loggedIn("192.0.2.1").newKey())
	for range 3 {
		rec := c.get("/api/export")
		require.Equal(t, http.StatusBadRequest, rec.Code)
		require.Contains(t, rec.Body.String(), `"error":"cost_too_high"`)
		require.Empty(t, rec.Header().Get("Retry-After"), "no wait would help")
	}
	require.Equal(t, [2]string{"10", "9"}, rateLimit(c.get("/api/quote")), "nothing was charged")

	// Where the bucket is empty, the same is said: waiting does not help either.
	for range 10 {
		c.get("/api/quote")
	}
	require.Equal(t, http.StatusTooManyRequests, c.get("/api/quote").Code)
	require.Equal(t, http.StatusBadRequest, c.get("/api/export").Code)
	require.Contains(t, c.accepting(browser).get("/api/export").Body.String(), "costs more than its limit ever admits")
}

func TestAnExportCostsTwentyCalls(t *testing.T) {
	w := newWorld(t).withOwner()
	session := w.loggedIn("192.0.2.1")
	c, other := w.using(session.newKey("tier", "pro")), w.using(session.newKey("tier", "pro"))
	for i := range 5 {
		rec := c.get("/api/export")
		require.Equal(t, http.StatusOK, rec.Code)
		require.Equal(t, [2]string{"100", fmt.Sprint(80 - 20*i)}, rateLimit(rec))
		require.Equal(t, fmt.Sprint(w.clock().Unix()+2*int64(i+1)), rec.Header().Get("X-RateLimit-Reset"))
		var body struct{ Quotes []string }
		decode(t, rec, &body)
		require.Equal(t, quotes, body.Quotes)
	}
	rec := c.get("/api/export")
	require.Equal(t, http.StatusTooManyRequests, rec.Code)
	require.Equal(t, "2", rec.Header().Get("Retry-After"))
	require.Equal(t, [2]string{"100", "0"}, rateLimit(rec))
	require.Equal(t, http.StatusTooManyRequests, other.get("/api/export").Code, "another key, but the same owner")
	w.advance(time.Second)
	require.Equal(t, "1", c.get("/api/export").Header().Get("Retry-After"))
	require.Equal(t, http.StatusOK, c.get("/api/quote").Code, "half an export is ten calls")
	w.advance(1100 * time.Millisecond)
	require.Equal(t, http.StatusOK, c.get("/api/export").Code)
}

// A try of a key costs its address one unit, whatever it asks for.
func TestTryingKeysCostsNoMoreAtTheExport(t *testing.T) {
	c := newWorld(t).using("ag_wrong")
	for i := range 20 {
		require.Equal(t, http.StatusUnauthorized, c.get("/api/export").Code, i)
	}
	rec := c.get("/api/export")
	assert.Equal(t, http.StatusTooManyRequests, rec.Code)
	assert.Contains(t, rec.Body.String(), `"api_unauthenticated/ip"`)
}

func TestTheDialectOfTheFieldsIsAChoice(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Fields = httpguard.Draft11 }).withOwner()
	rec := w.using(w.loggedIn("198.51.100.9").newKey()).get("/api/quote")
	require.Equal(t, `"api/key";q=10;w=10, "api/owner";q=10;w=10`, rec.Header().Get("RateLimit-Policy"))
	require.Equal(t, `"api/key";r=9;t=1, "api/owner";r=9;t=1`, rec.Header().Get("RateLimit"))
	require.Empty(t, rec.Header().Get("X-RateLimit-Limit"))
}
