package proofofwork_test

import (
	"context"
	"crypto/sha256"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/authdemo/proofofwork"
	"authguard/guard"
)

func verify(t *testing.T, token, solution string) bool {
	t.Helper()
	ok, err := proofofwork.Challenger{}.Verify(t.Context(), token, solution, guard.Attempt{})
	require.NoError(t, err)
	return ok
}

func TestWhatIsSolvedIsVerified(t *testing.T) {
	for _, token := range []string{"a", "another token", strings.Repeat("x", 50)} {
		posed := proofofwork.Challenger{}.Pose(token)
		require.Equal(t, guard.Puzzle{Kind: "proof-of-work", Token: token, Params: map[string]string{"bits": "19"}}, posed)
		answer, err := proofofwork.Solve(t.Context(), token)
		require.NoError(t, err)
		sum := sha256.Sum256([]byte(answer))
		require.Zero(t, sum[0])
		require.Zero(t, sum[1])
		require.Zero(t, sum[2]>>5)
		solution := strings.TrimPrefix(answer, token+".")
		require.True(t, verify(t, token, solution))
		require.False(t, verify(t, token+"x", solution))
		for _, bad := range []string{"", "0", solution + "1", " " + solution, "-" + solution, strings.Repeat("9", 17), solution + "\n"} {
			require.False(t, verify(t, token, bad), bad)
		}
	}
}

func TestSolvingEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := proofofwork.Solve(ctx, "a")
	require.ErrorIs(t, err, context.Canceled)
}
