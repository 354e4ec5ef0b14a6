package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"authguard/bench/flood"
	"authguard/bench/harness"
	"authguard/bench/memory"
	"authguard/bench/overredis"
	"authguard/bench/server"
	"authguard/bench/timing"
	"authguard/bench/web"
)

// families in the order of the page.
var families = []family{
	{"redis", overredis.Run},
	{"memory", memory.Run},
	{"http", web.Run},
	{"flood", flood.Run},
	{"timing", timing.Run},
	{"growth", growth},
}

type family struct {
	name string
	run  func(*harness.Session) error
}

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-ended
		server.CloseAll()
		os.Exit(1)
	}()
	if err := run(os.Args[1:]); err != nil {
		if !errors.Is(err, flag.ErrHelp) {
			fmt.Fprintln(os.Stderr, "bench:", err)
		}
		os.Exit(1)
	}
}

func run(args []string) error {
	flags := flag.NewFlagSet("bench [family ...]", flag.ContinueOnError)
	quick := flags.Bool("quick", false, "measure as little as possible: only the answers count")
	docs := flags.String("docs", "", "write benchmarks.md and its plots to this `folder`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	chosen, err := choose(flags.Args())
	if err != nil {
		return err
	}
	s := &harness.Session{Rounds: 5, Quick: *quick, Out: os.Stdout}
	if s.Quick {
		s.Rounds = 1
	}
	begin := time.Now()
	if err := introduce(s); err != nil {
		return err
	}
	for _, f := range chosen {
		if err := f.run(s); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	met, missed := s.Goals()
	s.Write(fmt.Sprintf("## In all\n\n%d goals met, %d missed, in %v.\n", met, missed, time.Since(begin).Round(time.Second)))
	if *docs == "" {
		return nil
	}
	return s.Save(*docs)
}

// choose finds families by name; all without a name.
func choose(names []string) ([]family, error) {
	if len(names) == 0 {
		return families, nil
	}
	var chosen []family
	var known []string
	for _, f := range families {
		known = append(known, f.name)
		if slices.Contains(names, f.name) {
			chosen = append(chosen, f)
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("no family %q, want some of %s", name, strings.Join(known, ", "))
		}
	}
	return chosen, nil
}
