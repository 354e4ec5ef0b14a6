package redisstore

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/internal/testserver"
)

// Whatever a key looks like, its slot is the one that servers compute.
func TestSlotsAreThoseOfTheServer(t *testing.T) {
	cluster := testserver.SharedCluster(t)
	keys := []string{"", "a", "{", "}", "{}", "{}a", "{a}", "x{a}y", "{a}{b}", "{{a}}", "}a{b}", "{a", "a}", "{}{a}", "\x00", "\xff{\xfe}", "123456789"}
	r := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		b := make([]byte, r.IntN(12))
		for i := range b {
			b[i] = "{}ab\x00\xff"[r.IntN(6)]
		}
		keys = append(keys, string(b))
	}
	for _, key := range keys {
		require.Equal(t, cluster.Slot(key), slotOf(key), "%q", key)
	}
}
