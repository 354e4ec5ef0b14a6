package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"authguard/policies"
)

// explain is the command of that name.
func explain(ctx context.Context, args []string, stdout io.Writer) error {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			return usageError(fmt.Sprintf("explain: unknown flag %s", arg))
		}
	}
	ps := policies.Default()
	switch len(args) {
	case 0:
	case 1:
		var err error
		if ps, err = policies.Load(args[0]); err != nil {
			return err
		}
	default:
		return usageError(fmt.Sprintf("explain takes one file, not %d", len(args)))
	}
	if len(ps) == 0 {
		_, err := fmt.Fprintf(stdout, "%s has no policies: the presets are in force, which explain tells without a file.\n", args[0])
		return err
	}
	left, err := policies.Explain(ctx, ps)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(stdout, left)
	return err
}
