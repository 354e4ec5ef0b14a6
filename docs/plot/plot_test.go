package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"authguard/limiter"
)

const stale = "what docs/%s shows is not what the laws do: go run ./docs/plot"

func TestPlotsAreCurrent(t *testing.T) {
	for name, plot := range plots {
		committed, err := os.ReadFile(filepath.Join("..", "img", name))
		require.NoError(t, err)
		require.Equalf(t, string(committed), string(plot().Bytes()), stale, "img/"+name)
	}
}

func TestThePageShowsEachPlot(t *testing.T) {
	page := page(t)
	files, err := filepath.Glob("../img/*.svg")
	require.NoError(t, err)
	require.Len(t, files, len(plots))
	for _, file := range files {
		require.Contains(t, page, "(img/"+filepath.Base(file)+")")
	}
}

// The sentences of the page that speak of a plot.
func TestWhatThePageSaysOfThePlots(t *testing.T) {
	around := func(limit limiter.Limit) []time.Duration {
		return hammer(limit, 117*time.Second, 190*time.Second, 100*time.Millisecond, nobody)
	}
	fixed := around(limiter.FixedWindow{Limit: 10, Window: time.Minute})
	require.Equal(t, 20, most(fixed, 4*time.Second))
	exact := around(limiter.SlidingWindow{Limit: 10, Window: time.Minute})
	require.Equal(t, 10, most(exact, time.Minute))
	for _, limit := range []limiter.Limit{
		limiter.SlidingWindowCounter{Limit: 10, Window: time.Minute},
		limiter.TokenBucket{Capacity: 10, Refill: 10, Per: time.Minute},
	} {
		require.Equal(t, 19, most(around(limit), time.Minute))
		require.Equal(t, 11, most(around(limit), 10*time.Second))
	}

	failures := streak(patience)
	require.Len(t, failures, 80)
	require.Contains(t, page(t), "no sooner than "+short(failures[79].at)+" after the first")
}

// The counter under saturation: one less than its limit, and of one every other.
func TestSmallCountersStayBelowTheirLimit(t *testing.T) {
	for limit, want := range map[int64]int{1: 30, 2: 60, 10: 540, 100: 5940} {
		admitted := hammer(limiter.SlidingWindowCounter{Limit: limit, Window: time.Minute}, 10*time.Minute, 70*time.Minute-1, 50*time.Millisecond, nobody)
		require.InDelta(t, want, len(admitted), float64(limit)+1, "limit %d", limit)
	}
}

// Where one bar stands for both.
func TestAMeterIsATokenBucket(t *testing.T) {
	for _, c := range contestants(nobody, "") {
		bucket, ok := c.limit.(limiter.TokenBucket)
		if !ok {
			continue
		}
		meter := contestant{limit: limiter.LeakyBucket{Capacity: bucket.Capacity, Leak: bucket.Refill, Per: bucket.Per}, member: nobody}
		require.Equal(t, trainAdmitted(c), trainAdmitted(meter))
		require.Equal(t, saturationAdmitted(c), saturationAdmitted(meter))
		return
	}
	t.Fatal("no bucket among the contestants")
}

func TestTheQueueLeavesEvenly(t *testing.T) {
	passages := pass(limiter.LeakyBucket{Capacity: 5, Leak: 1, Per: time.Second}, arrivals)
	passages = slices.DeleteFunc(passages, func(p passage) bool { return !p.admitted })
	require.Less(t, len(passages), len(arrivals), "nothing found the queue full")
	for i := 1; i < len(passages); i++ {
		require.GreaterOrEqual(t, passages[i].departure-passages[i-1].departure, time.Second)
	}
}
