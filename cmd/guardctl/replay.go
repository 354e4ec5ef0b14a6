package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"

	"authguard/guard/recording"
	"authguard/guard/replay"
	"authguard/policies"
)

// replayLog is the command replay.
func replayLog(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("replay", flag.ContinueOnError)
	flags.SetOutput(io.Discard) // errors are told once, by whoever gets them
	asJSON := flags.Bool("json", false, "")
	if err := flags.Parse(args); err != nil {
		return usageError("replay: " + err.Error())
	}
	last := flags.NArg() - 1
	if last < 1 {
		return usageError(fmt.Sprintf("replay takes recordings and a file of policies, not %d arguments", flags.NArg()))
	}
	ps, err := policies.Load(flags.Arg(last))
	if err != nil {
		return err
	}
	log, err := recording.OpenReader(flags.Args()[:last]...)
	if err != nil {
		return err
	}
	defer log.Close() // it was only read
	report, err := replay.Run(ctx, log, ps)
	if err != nil {
		return err
	}
	if !*asJSON {
		_, err = fmt.Fprint(stdout, report)
		return err
	}
	out := json.NewEncoder(stdout)
	out.SetIndent("", "  ")
	return out.Encode(report)
}
