package authguard_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"authguard/policies"
)

// What the README shows is what is compiled, run, read and in force.
func TestTheReadmeIsTrue(t *testing.T) {
	readme := read(t, "README.md")

	example := strings.ReplaceAll(read(t, "guard/httpguard/example_test.go"), "\n\t", "\n")
	blocks := codeBlocks(readme, "go")
	require.NotEmpty(t, blocks)
	require.Contains(t, example, blocks[0], "the first example")

	proof := strings.ReplaceAll(read(t, "guard/guardtest/example_test.go"), "\n\t", "\n")
	require.True(t, slices.ContainsFunc(blocks, func(block string) bool {
		return strings.Contains(block, "guardtest.Bounded") && strings.Contains(proof, strings.TrimSpace(block))
	}), "the example of guardtest")

	device := read(t, "guard/device_example_test.go")
	require.True(t, slices.ContainsFunc(blocks, func(block string) bool {
		return strings.Contains(block, "TrustDevice") && strings.Contains(device, strings.TrimSpace(block))
	}), "the example of devices")

	yaml := codeBlocks(readme, "yaml")
	require.Len(t, yaml, 1)
	shown, err := policies.Parse("README.md", []byte(yaml[0]))
	require.NoError(t, err)
	for _, preset := range policies.Default() {
		require.Contains(t, readme, "`"+preset.Action+"`", "the table of presets")
		for _, rule := range preset.Rules {
			for _, s := range shown[0].Rules {
				if preset.Action == shown[0].Action && rule.Name == s.Name {
					require.Equal(t, rule, s, "the rule that is shown is the preset's")
				}
			}
		}
	}

	for _, link := range regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(readme, -1) {
		require.FileExists(t, link[1])
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// codeBlocks are the fenced blocks of a language.
func codeBlocks(markdown, language string) (blocks []string) {
	for _, m := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(markdown, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}
