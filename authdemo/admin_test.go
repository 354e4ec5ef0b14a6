package authdemo

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// The operators' API is for who has the token, from any machine; without a token
// there is none.
func TestTheOperatorsAPIIsForOperators(t *testing.T) {
	w := newWorld(t, operated).withOwner()
	for range 5 {
		w.from("198.51.100.9").login(owner, "guess")
	}
	require.Equal(t, http.StatusTooManyRequests, w.from("198.51.100.9").login(owner, "guess").Code)
	far := w.presenting("203.0.113.5", adminToken)
	rec := far.send(http.MethodPost, "/admin/inspect", "application/json", `{"action":"login","account":"`+owner+`"}`)
	require.Equal(t, http.StatusOK, rec.Code, rec.Body)
	require.Contains(t, rec.Body.String(), `"refuses":true`)
	require.Equal(t, "no-store", rec.Header().Get("Cache-Control"))
	require.Equal(t, http.StatusOK, far.send(http.MethodPost, "/admin/block", "application/json", `{"account":"`+owner+`","for":"1h"}`).Code)
	require.Contains(t, w.log.String(), "event=blocked")
	require.NotContains(t, w.log.String(), owner)
	require.NotContains(t, w.log.String(), adminToken)

	for path, want := range map[string]int{"/admin/refused?n=1": http.StatusUnauthorized, "/admin/": http.StatusUnauthorized, "/admin": http.StatusUnauthorized} {
		require.Equal(t, want, w.from("198.51.100.10").get(path).Code, path)
		require.Equal(t, want, w.from("127.0.0.1").get(path).Code, "not even this machine")
		require.Equal(t, http.StatusNotFound, newWorld(t).presenting("198.51.100.10", adminToken).get(path).Code, path)
	}
	require.Equal(t, http.StatusUnauthorized, w.presenting("203.0.113.6", adminToken+"?").get("/admin/refused?n=1").Code)
}
