package memstore_test

import (
	"testing"
	"time"

	"authguard/limiter"
	"authguard/limiter/limitertest"
	"authguard/limiter/memstore"
)

func TestNotes(t *testing.T) {
	limitertest.Noter(t, func(_ *testing.T, now func() time.Time) limiter.Noter {
		return memstore.New(memstore.Config{Now: now})
	})
}
