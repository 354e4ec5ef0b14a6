package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

func page(t *testing.T) string {
	text, err := os.ReadFile("../algorithms.md")
	require.NoError(t, err)
	return string(text)
}

func TestWalksAreCurrent(t *testing.T) {
	page := page(t)
	answered, walked, err := answerWalks(page)
	require.NoError(t, err)
	lines := strings.Split(page, "\n")
	for i, line := range strings.Split(answered, "\n") {
		require.Equalf(t, line, lines[i], "line %d: "+stale, i+1, "algorithms.md")
	}
	seen := map[string]bool{}
	for _, limit := range walked {
		seen[limit.Law()] = true
	}
	for _, law := range laws {
		require.True(t, seen[law.Law()], "%s is not walked", law.Law())
	}
}

func TestAnswersAreTheLaws(t *testing.T) {
	const table = "```go\nlimiter.SlidingWindow{Limit: 1, Window: time.Minute}\n```\n\n" +
		"| at | ask | answer | retry after | why |\n|---|---|---|---|---|\n"
	for row, want := range map[string]string{
		"| 0s | 1 | no | 9s | so |":   "| 0s | 1 | yes |  | so |",
		"| 0s | look | | | |":         "| 0s | look | (yes) |  |  |",
		"| 0s | 2 | | | |":            "| 0s | 2 | error: cost too high |  |  |",
		"| 0s | 1 |\n":                "7: 2 cells under 5 columns",
		"| soon | 1 | | | |":          `7: time: invalid duration "soon"`,
		"| 0s | refund of 1s | | | |": `7: nothing was charged at "1s"`,
	} {
		answered, _, err := answerWalks(table + row)
		if err != nil {
			answered = err.Error()
		}
		require.Equal(t, want, strings.TrimPrefix(answered, table))
	}
}

func TestLiterals(t *testing.T) {
	limit, ok := parseLimit("limiter.TokenBucket{Capacity: 5, Refill: 1, Per: 2 * time.Second}")
	require.True(t, ok)
	require.Equal(t, limiter.TokenBucket{Capacity: 5, Refill: 1, Per: 2 * time.Second}, limit)
	for _, source := range []string{
		"", "limiter.New(store)", "limiter.Queue{Limit: 1}", "limiter.FixedWindow{1, time.Second}",
		"limiter.FixedWindow{Limit: 1, Windows: time.Second}", "limiter.FixedWindow{Limit: n, Window: time.Second}",
		"limiter.FixedWindow{Limit: 0, Window: time.Second}", `limiter.FixedWindow{Limit: "1", Window: time.Second}`,
	} {
		_, ok := parseLimit(source)
		require.False(t, ok, source)
	}
}
