package authdemo

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func (w *world) loggedIn(addr string) *client {
	w.Helper()
	c := w.from(addr)
	require.Equal(w, http.StatusOK, c.login(owner, ownerPassword).Code)
	return c
}

func TestChangePassword(t *testing.T) {
	w := newWorld(t).withOwner()
	assert.Equal(t, http.StatusUnauthorized, w.from("198.51.100.9").post("/account/password", "current", ownerPassword, "new", "new words of mine").Code)

	c, elsewhere := w.loggedIn("198.51.100.9"), w.loggedIn("192.0.2.1")
	rec := c.post("/account/password", "current", "guess", "new", "new words of mine")
	assert.Equal(t, http.StatusUnauthorized, rec.Code)
	assert.JSONEq(t, `{"error":"invalid_credentials"}`, rec.Body.String())
	assert.Equal(t, http.StatusBadRequest, c.post("/account/password", "current", ownerPassword, "new", "short").Code)
	assert.Equal(t, http.StatusBadRequest, c.post("/account/password", "current", ownerPassword).Code)

	require.Equal(t, http.StatusNoContent, c.post("/account/password", "current", ownerPassword, "new", "new words of mine").Code)
	assert.Equal(t, http.StatusOK, c.get("/me").Code, "this session goes on")
	assert.Equal(t, http.StatusUnauthorized, elsewhere.get("/me").Code, "the others have ended")
	assert.Equal(t, http.StatusOK, w.from("192.0.2.1").login(owner, "new words of mine").Code)
}

// Somebody who finds a session open guesses at the password behind it.
func TestGuessesInASessionAreLimited(t *testing.T) {
	w := newWorld(t).withOwner()
	c := w.loggedIn("198.51.100.9")
	for range 5 {
		require.Equal(t, http.StatusUnauthorized, c.post("/account/password", "current", "guess", "new", "new words of mine").Code)
	}
	before := w.svc.Hasher().Computed()
	rec := c.post("/account/password", "current", ownerPassword, "new", "new words of mine")
	assert.Equal(t, http.StatusTooManyRequests, rec.Code)
	assert.Contains(t, rec.Body.String(), `"reauth/device"`)
	assert.Equal(t, before, w.svc.Hasher().Computed())
	assert.Equal(t, http.StatusOK, c.get("/me").Code)

	rec = c.accepting(browser).postForm("/account/password", "current", ownerPassword, "new", "new words of mine")
	assert.Equal(t, http.StatusTooManyRequests, rec.Code)
	assert.Contains(t, rec.Body.String(), owner, "the page still knows who is logged in")
}

func (c *client) newKey(nameValue ...string) string {
	c.w.Helper()
	rec := c.post("/api/keys", nameValue...)
	require.Equal(c.w, http.StatusCreated, rec.Code)
	var body struct{ Key string }
	require.NoError(c.w, json.Unmarshal(rec.Body.Bytes(), &body))
	return body.Key
}

func TestAPIKeys(t *testing.T) {
	w := newWorld(t).withOwner()
	assert.Equal(t, http.StatusUnauthorized, w.from("198.51.100.9").post("/api/keys").Code)
	c := w.loggedIn("198.51.100.9")
	keys := make(map[string]bool)
	for range 4 {
		keys[c.newKey()] = true
	}
	rec := c.accepting(browser).postForm("/api/keys")
	assert.Equal(t, http.StatusCreated, rec.Code)
	assert.Regexp(t, `<code class="key">ag_[\w-]{43}</code>`, rec.Body.String())
	assert.Len(t, keys, 4)
	rec = c.accepting("application/json").post("/api/keys")
	assert.Equal(t, http.StatusConflict, rec.Code)
	assert.Contains(t, rec.Body.String(), "too_many_keys")
}

func TestQuote(t *testing.T) {
	w := newWorld(t).withOwner()
	session := w.loggedIn("198.51.100.9")
	first, second := session.newKey(), session.newKey()
	with := func(header, value string) *client {
		c := w.from("198.51.100.9")
		c.header.Set(header, value)
		return c
	}
	for i := range 10 {
		c := with("Authorization", "Bearer "+first)
		if i%2 == 1 {
			c = with("X-API-Key", first)
		}
		rec := c.get("/api/quote")
		require.Equal(t, http.StatusOK, rec.Code)
		assert.Contains(t, rec.Body.String(), `"quote"`)
		assert.Equal(t, "10", rec.Header().Get("X-RateLimit-Limit"))
		assert.Equal(t, fmt.Sprint(9-i), rec.Header().Get("X-RateLimit-Remaining"))
		assert.Equal(t, fmt.Sprint(w.clock().Unix()+int64(i)+1), rec.Header().Get("X-RateLimit-Reset"))
	}
	rec := with("X-API-Key", first).get("/api/quote")
	assert.Equal(t, http.StatusTooManyRequests, rec.Code)
	assert.Equal(t, "1", rec.Header().Get("Retry-After"))
	assert.Equal(t, "0", rec.Header().Get("X-RateLimit-Remaining"))
	assert.Equal(t, http.StatusTooManyRequests, with("X-API-Key", second).get("/api/quote").Code, "another key, but the same owner")
	w.advance(time.Second)
	assert.Equal(t, http.StatusOK, with("X-API-Key", second).get("/api/quote").Code)
}

// MO-02: wrong keys are limited by address, and good ones not for their sake.
func TestWrongKeysAreLimitedByAddress(t *testing.T) {
	w := newWorld(t).withOwner()
	key := w.loggedIn("198.51.100.9").newKey()
	c := w.from("198.51.100.9")
	statuses := make(map[int]int)
	for i := range 100 {
		c.header = http.Header{"X-Api-Key": {fmt.Sprintf("ag_%d", i)}}
		rec := c.get("/api/quote")
		statuses[rec.Code]++
		assert.Empty(t, rec.Header().Get("X-RateLimit-Limit"))
	}
	assert.Equal(t, map[int]int{http.StatusUnauthorized: 20, http.StatusTooManyRequests: 80}, statuses)
	c.header = http.Header{"X-Api-Key": {key}}
	assert.Equal(t, http.StatusOK, c.get("/api/quote").Code)
	for name, header := range map[string]http.Header{
		"two keys":       {"X-Api-Key": {key, key}},
		"in two fields":  {"X-Api-Key": {key}, "Authorization": {"Bearer " + key}},
		"another scheme": {"X-Api-Key": {key}, "Authorization": {"Basic " + key}},
		"none":           {},
	} {
		other := w.from("192.0.2.1")
		other.header = header
		rec := other.get("/api/quote")
		assert.Equal(t, http.StatusUnauthorized, rec.Code, name)
		assert.Equal(t, `Bearer realm="authdemo"`, rec.Header().Get("WWW-Authenticate"))
	}
}
