package guard_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/guard"
)

func TestFingerprint(t *testing.T) {
	a, err := guard.Fingerprint(secret)
	require.NoError(t, err)
	require.Len(t, a, 16)
	again, err := guard.Fingerprint(secret)
	require.NoError(t, err)
	require.Equal(t, a, again)
	other, err := guard.Fingerprint(append([]byte("x"), secret...))
	require.NoError(t, err)
	require.NotEqual(t, a, other)
	_, err = guard.Fingerprint(secret[:15])
	require.EqualError(t, err, "guard: Config.Secret is 15 bytes, want at least 16")
}
