package memstore_test

import (
	"testing"
	"time"

	"authguard/limiter"
	"authguard/limiter/limitertest"
	"authguard/limiter/memstore"
)

func TestConformance(t *testing.T) {
	limitertest.Store(t, func(_ *testing.T, now func() time.Time) limiter.Store {
		return memstore.New(memstore.Config{Now: now})
	})
}
