package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"

	"authguard/bench/harness"
)

const introduction = `# Benchmarks

Written by ` + "`make bench`" + `, which measures authguard beside its peers and floors (bench/, a Go module of its own).
Contenders of a table take turns, round by round, in one process; a figure is the median of its rounds with the least and
the most in brackets, a ratio the median of the ratios of each round. Each run counts what was admitted, and a wrong
count ends the benchmark. Goals are the project's own. One that is missed stays here as missed.

`

// peers are the modules whose versions matter.
var peers = []string{
	"github.com/sethvargo/go-limiter", "golang.org/x/time", "github.com/ulule/limiter/v3", "github.com/throttled/throttled/v2",
	"github.com/go-redis/redis_rate/v10", "github.com/redis/go-redis/v9", "github.com/redis/rueidis",
	"github.com/go-chi/chi/v5", "github.com/go-chi/httprate", "github.com/didip/tollbooth/v7",
}

// introduce says what is measured with, and on what.
func introduce(s *harness.Session) error {
	s.Write(introduction)
	s.Write("| | |\n|---|---|\n")
	row := func(what, value string) { s.Write(fmt.Sprintf("| %s | %s |\n", what, value)) }
	row("machine", fmt.Sprintf("%d cores, %s, %s/%s", runtime.NumCPU(), processor(), runtime.GOOS, runtime.GOARCH))
	if load, err := os.ReadFile("/proc/loadavg"); err == nil {
		row("load before", strings.Join(strings.Fields(string(load))[:3], " "))
	}
	row("Go", runtime.Version())
	if out, err := exec.Command("redis-server", "--version").Output(); err == nil {
		row("redis-server", strings.TrimSpace(string(out)))
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Errorf("the program does not know its modules")
	}
	for _, m := range info.Deps {
		for _, p := range peers {
			if m.Path == p {
				row(p, m.Version)
			}
		}
	}
	rounds := fmt.Sprint(s.Rounds)
	if s.Quick {
		rounds += ", quick: the figures mean nothing"
	}
	row("rounds", rounds)
	s.Write("\n")
	return nil
}

// processor is its name, where the system tells.
func processor() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "model name"); ok {
			return strings.TrimSpace(strings.TrimLeft(name, " \t:"))
		}
	}
	return "unknown processor"
}
