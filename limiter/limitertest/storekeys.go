package limitertest

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// ME-06, MC-03: whatever a key looks like, it is that key and no other.
func hostileKeys(r *rig) {
	long := strings.Repeat("x", 1<<20)
	keys := []string{
		"", " ", "  ", "\t", "\n", "\r\n", "\x00", "\x00\x00", "a", "a ", " a", "a\n", "a\x00", "a\x00b", "A",
		"{}", "{a}", "{a}b", "{b}a", "a:b", "a::b", "*", "?", "[a]", "%00", "\\x00", "../a", "a/b", `"`, "'", "$(a)",
		"é", "e\u0301", "\u202e", "\ufeff", "\ufffd", "\xff", "\xfe", "\xff\xfe", "0", "00", "-1", "nil", "null",
		long, long + "y", "y" + long, long[1:], strings.Repeat("\x00", 1<<20),
	}
	limit := limiter.SlidingWindow{Limit: 1, Window: time.Hour}
	var batch []limiter.Charge
	for i, key := range keys {
		ok, _ := r.take(one(key, limit))
		require.Truef(r.t, ok, "key %d, %.20q, is taken for an earlier one", i, key)
		batch = append(batch, one(key, limit))
	}
	for i, key := range keys {
		ok, _ := r.take(one(key, limit))
		require.Falsef(r.t, ok, "key %d, %.20q, was not kept", i, key)
	}
	for i, c := range r.denied(batch...) {
		require.Falsef(r.t, c.Decision.Allowed, "key %d in a batch", i)
	}
	require.NoError(r.t, r.store.Forget(r.t.Context(), keys))
	for i, c := range r.admitted(batch...) {
		require.Truef(r.t, c.Taken, "key %d in a batch, after forgetting", i)
	}
}
