package clients

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/authdemo/proofofwork"
	"authguard/guard"
)

// What the demo's script for browsers finds is what the demo takes, wherever the
// number falls among SHA-256's blocks.
func TestTheBrowsersSolverSolves(t *testing.T) {
	t.Parallel()
	var tokens, answers []string
	for _, length := range []int{1, 40, 50, 53, 54, 55, 62, 63, 64} {
		tokens = append(tokens, strings.Repeat("t", length))
	}
	question := map[string]any{"bits": proofofwork.Bits, "tokens": tokens}
	node(t, "solve.js", question, &answers, filepath.Join("..", "authdemo", "pages", "solver.js"))
	require.Len(t, answers, len(tokens))
	for i, token := range tokens {
		solution, ok := strings.CutPrefix(answers[i], token+".")
		require.True(t, ok, answers[i])
		solved, err := proofofwork.Challenger{}.Verify(t.Context(), token, solution, guard.Attempt{})
		require.NoError(t, err)
		require.True(t, solved, answers[i])
	}
}
