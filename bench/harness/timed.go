package harness

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Metrics of a [Timed] loop, of one step. CPU time counts all of the process, so
// that a collection of garbage is paid by who made it, and leaves out the time that
// other processes took the processors away.
const (
	Nanoseconds Metric = "ns"
	CPUTime     Metric = "CPU ns"
	Bytes       Metric = "B"
	Allocations Metric = "allocs"
)

// Timed calls step n times in each of so many goroutines and measures one step:
// the time of the whole by all steps, and the memory taken. step is told its
// goroutine and its number therein, and reports whether it was admitted; Timed
// fails unless exactly admitted of them were.
func Timed(goroutines, n, admitted int, step func(g, i int) (bool, error)) (Sample, error) {
	yes, errs := make([]int, goroutines), make([]error, goroutines)
	loop := func(g int) {
		admitted := 0
		for i := range n {
			ok, err := step(g, i)
			if err != nil {
				errs[g] = err
				return
			}
			if ok {
				admitted++
			}
		}
		yes[g] = admitted
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin, used := time.Now(), CPU()
	if goroutines == 1 {
		loop(0)
	} else {
		var wg sync.WaitGroup
		for g := range goroutines {
			wg.Go(func() { loop(g) })
		}
		wg.Wait()
	}
	took := time.Since(begin)
	used = CPU() - used
	runtime.ReadMemStats(&after)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	total := 0
	for _, y := range yes {
		total += y
	}
	if total != admitted {
		return nil, fmt.Errorf("admitted %d of %d, want %d", total, goroutines*n, admitted)
	}
	steps := float64(goroutines * n)
	return Sample{
		string(Nanoseconds): float64(took.Nanoseconds()) / steps,
		string(CPUTime):     float64(used.Nanoseconds()) / steps,
		string(Bytes):       perStep(after.TotalAlloc-before.TotalAlloc, steps),
		string(Allocations): perStep(after.Mallocs-before.Mallocs, steps),
	}, nil
}

// perStep leaves out what the runtime itself allocates now and then, as package
// testing does by rounding down.
func perStep(total uint64, steps float64) float64 {
	x := float64(total) / steps
	if x < 0.01 {
		return 0
	}
	return x
}

// CPU is what this process has used of the processors so far.
func CPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
