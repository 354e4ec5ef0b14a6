package main

import (
	"fmt"
	"os"
	"path/filepath"

	"authguard/internal/svg"
)

// plots are the drawings of docs/img.
var plots = map[string]func() *svg.Drawing{
	"boundary.svg":   boundary,
	"train.svg":      train,
	"saturation.svg": saturation,
	"backoff.svg":    backoff,
	"queue.svg":      queue,
}

func main() {
	if err := run("docs"); err != nil {
		fmt.Fprintln(os.Stderr, "plot:", err)
		os.Exit(1)
	}
}

// run rewrites what is derived in docs.
func run(docs string) error {
	for name, plot := range plots {
		if err := os.WriteFile(filepath.Join(docs, "img", name), plot().Bytes(), 0o644); err != nil {
			return err
		}
	}
	page := filepath.Join(docs, "algorithms.md")
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	answered, _, err := answerWalks(string(text))
	if err != nil {
		return fmt.Errorf("%s:%w", page, err)
	}
	return os.WriteFile(page, []byte(answered), 0o644)
}
