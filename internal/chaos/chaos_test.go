//go:build unix

// Package chaos_test breaks the store of limits in every way that happens to real
// ones, while four processes of an application are under load, and holds what they
// admitted against the bounds that docs/operations.md promises. `make chaos` runs
// it and prints a table.
package chaos_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/guard"
	"authguard/internal/testkit"
	"authguard/internal/testserver"
)

var run = flag.Bool("chaos", false, "run the scenarios, which takes about a minute and a half")

// maxShown is how many of the things that a scenario broke are told.
const maxShown = 10

// taskVariable makes a worker of this program: the environment of one has its task.
const taskVariable = "AUTHGUARD_CHAOS_TASK"

func TestMain(m *testing.M) {
	text, isWorker := os.LookupEnv(taskVariable)
	if !isWorker {
		os.Exit(m.Run())
	}
	go func() {
		io.Copy(io.Discard, os.Stdin) // ends with whoever started this
		os.Exit(1)
	}()
	var t task
	err := json.Unmarshal([]byte(text), &t)
	if err == nil {
		err = work(t, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestChaos(t *testing.T) {
	if !*run {
		t.Skip("make chaos runs it")
	}
	testserver.Redis(t) // or there is nothing to break
	var played []*outcome
	defer func() { printTable(os.Stdout, played) }()
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			o := play(t, s)
			played = append(played, o)
			for i, fault := range o.judge() {
				if i == maxShown {
					t.Error("and more")
					break
				}
				t.Error(fault)
			}
		})
	}
}

// play plays a scenario.
func play(t *testing.T, s scenario) *outcome {
	st := s.stage(t)
	start := time.Now().Add(200 * time.Millisecond)
	o := &outcome{scenario: s}
	var (
		mu    sync.Mutex
		under sync.WaitGroup
	)
	for range processes {
		under.Go(func() {
			healed, err := runWorker(t, task{st.url, s.timeout(), start, start.Add(s.lasts), s.succeed}, func(r report) {
				mu.Lock()
				defer mu.Unlock()
				o.add(r)
			})
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				o.Wrong = append(o.Wrong, err.Error())
			}
			if err != nil || !healed {
				o.restarts++
			}
		})
	}
	for _, a := range st.acts {
		time.Sleep(time.Until(start.Add(a.at)))
		a.do()
	}
	under.Wait()
	var err error
	o.charged, err = readLedger(st.url)
	require.NoError(t, err)
	return o
}

// runWorker runs a worker to its end. It tells the lines of it to each, and whether
// the store answered it at last.
func runWorker(t *testing.T, w task, each func(report)) (healed bool, err error) {
	text, err := json.Marshal(w)
	if err != nil {
		return false, err
	}
	self, err := os.Executable()
	if err != nil {
		return false, err
	}
	ctx, cancel := context.WithDeadline(t.Context(), w.End.Add(15*time.Second))
	defer cancel()
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(os.Environ(), taskVariable+"="+string(text))
	log := new(testkit.Buffer)
	cmd.Stderr = log
	if _, err := cmd.StdinPipe(); err != nil { // it closes with this process
		return false, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	for lines := json.NewDecoder(out); ; {
		var r report
		if err = lines.Decode(&r); err != nil {
			break
		}
		healed = r.Healed
		each(r)
	}
	if end := cmd.Wait(); end != nil || !errors.Is(err, io.EOF) {
		return false, fmt.Errorf("a process ended: %w, %w: %s", end, err, log)
	}
	return healed, nil
}

// readLedger asks the store what it has charged.
func readLedger(url string) (map[account]int, error) {
	g, err := newGuard(url, patience)
	if err != nil {
		return nil, err
	}
	charged := map[account]int{}
	for n := range ledgers {
		a := account{0, n}
		status, err := g.Inspect(context.Background(), guard.Attempt{Action: ledger, Account: a.String()})
		if err != nil {
			return nil, err
		}
		charged[a] = int(status[0].Used())
	}
	return charged, nil
}

func printTable(out io.Writer, played []*outcome) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nscenario\tattempts\tadmitted\tdeny\tlocal\theld\tunanswered\tlost\tslowest\tlate\tstalled\trestarts")
	for _, o := range played {
		held := "yes"
		if len(o.judge()) > 0 {
			held = "NO"
		}
		admitted, unanswered := 0, 0
		for _, action := range []string{deny, local, ledger} {
			sum := o.sum(action)
			admitted += sum.Shared + sum.Alone + sum.Succeeded
			unanswered += sum.Unknown
		}
		most, bound := o.most(deny)
		mostLocal, boundLocal := o.most(local)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d/%d\t%d/%d\t%s\t%d\t%d\t%d ms\t%d\t%d\t%d\n",
			o.scenario.name, o.Attempts, admitted, most, bound, mostLocal, boundLocal, held,
			unanswered, o.lost(), o.Slowest.Milliseconds(), o.Late, o.Stalled, o.restarts)
	}
	w.Flush()
	fmt.Fprintf(out, `
deny, local: by what the rules do while the store is down, the units that the account
with most of them was admitted, and the bound: %d, times 1 + losses of data, and under
local %d more for %d processes. unanswered: the store did not say what it did. lost:
units that it forgot, of those that were only counted. late: answers of the store after more than
the deadline of %v (in the first two %v) and a fifth. stalled: as late, by a process
that did not run meanwhile, as a sleep beside the load shows. restarts: processes that
would need one.
`, perAccount, boundAlone(perAccount), processes, deadline, patience)
}
