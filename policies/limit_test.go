package policies

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

// The hint to use a counter must come exactly where the law says no.
func TestMaxExactIsTheLaws(t *testing.T) {
	require.NoError(t, limiter.SlidingWindow{Limit: maxExact, Window: time.Second}.Validate())
	require.Error(t, limiter.SlidingWindow{Limit: maxExact + 1, Window: time.Second}.Validate())
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s": 90 * time.Second, "1h30m": 90 * time.Minute, "1.5h": 90 * time.Minute, "250ms": 250 * time.Millisecond,
		"1d": day, "7d": 7 * day, "1d12h": 36 * time.Hour, "2d0s": 2 * day, "31d": limiter.MaxWindow,
	} {
		got, err := parseWindow(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "d", "0d", "-1d", "1dd", "1d2d", "1d 2h", "1D", "d12h", "01d", "NaN", "Inf", "1e3", "0x10", "+5", "15mm", "1d+1h"} {
		_, err := parseWindow(text)
		require.Error(t, err, text)
	}
}
