package limitertest

import (
	"testing"
	"time"

	"authguard/limiter"
)

// The suite must hold for the store that it compares others with.
func TestReference(t *testing.T) {
	Store(t, func(_ *testing.T, now func() time.Time) limiter.Store { return newReference(now) })
}
