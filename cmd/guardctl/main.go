package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"
)

// Exit statuses.
const (
	statusOK     = 0
	statusFailed = 1
	statusUsage  = 2
)

const usage = `usage: guardctl COMMAND [FLAGS] [ARGUMENTS]

explain [FILE]                     what the policies of FILE leave to guessers; without FILE, the presets
replay [-json] LOG... FILE         what the policies of FILE would have refused of what was recorded in
                                   LOG, files or folders of one or more processes
inspect ACTION [ACCOUNT]           why attempts are refused, and until when; consumes nothing
list                               who is refused now
unlock ACCOUNT [ACTION[/RULE]]...  forget what is held against an account
block [ACCOUNT]                    refuse an account, or with -ip an address, for so long
unblock [ACCOUNT]                  end that
erase -redis URL -secret-file FILE [-previous-secret-file FILE] [-policies FILE] [-id ID] ACCOUNT
                                   forget all that is counted under ACCOUNT's name and ID
` + operatorUsage

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// usageError is an error in how the program was called.
type usageError string

func (e usageError) Error() string { return string(e) }

// run carries out one command and gives the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return statusUsage
	}
	if slices.ContainsFunc(args, func(arg string) bool { return arg == "-h" || arg == "-help" || arg == "--help" }) || args[0] == "help" {
		fmt.Fprint(stdout, usage)
		return statusOK
	}
	err := command(ctx, args[0], args[1:], stdout)
	switch {
	case err == nil:
		return statusOK
	case errors.As(err, new(usageError)):
		fmt.Fprintf(stderr, "guardctl: %v\n\n%s", err, usage)
		return statusUsage
	}
	sep := " "
	if errors.As(err, new(interface{ Unwrap() []error })) {
		sep = "\n" // the errors of a file, each a line that begins with its place
	}
	fmt.Fprintf(stderr, "guardctl:%s%v\n", sep, err)
	return statusFailed
}

func command(ctx context.Context, name string, args []string, stdout io.Writer) error {
	switch name {
	case "explain":
		return explain(ctx, args, stdout)
	case "replay":
		return replayLog(ctx, args, stdout)
	case "erase":
		return erase(ctx, args, stdout)
	case "inspect", "list", "unlock", "block", "unblock":
		return operate(ctx, name, args, stdout)
	}
	return usageError(fmt.Sprintf("unknown command %q", name))
}
