package memory

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"authguard/bench/harness"
)

const (
	heapPerKey harness.Metric = "heap, B a key"
	fullGC     harness.Metric = "full GC, ms"
)

// million fills limiters with many keys, and asks those at random.
func (f *family) million() error {
	e := harness.Experiment{
		Name:   harness.Number(float64(f.keys)) + " keys",
		Rounds: 3,
		About: "Each key is admitted once; that is the heap, texts of keys included where they are kept, and the time of a full garbage collection. " +
			"Then two goroutines ask random keys; ns is the time of the whole by all asks. Three rounds.",
		Metrics: []harness.Metric{harness.Nanoseconds, harness.CPUTime, harness.Allocations, heapPerKey, fullGC},
		Ratios: []harness.Ratio{
			{Metric: harness.Nanoseconds, Per: sethvargo}, {Metric: heapPerKey, Per: sethvargo}, {Metric: fullGC, Per: sethvargo},
		},
		Goals: []harness.Goal{
			{Of: oursBucket, Metric: harness.Nanoseconds, Per: sethvargo, AtMost: 0.7},
			{Of: oursBucket, Metric: heapPerKey, Per: sethvargo, AtMost: 0.38},
			{Of: oursBucket, Metric: fullGC, Per: sethvargo, AtMost: 0.2},
		},
	}
	makers := append([]maker{ours(oursWindow, window)}, ourLaws...)
	for _, m := range append(makers, peers...) {
		e.Contenders = append(e.Contenders, harness.Contender{Name: m.name, Run: func() (harness.Sample, error) {
			return many(m, f.keys, f.asks)
		}})
	}
	_, err := f.Measure(e)
	return err
}

// many is a run with so many keys.
func many(m maker, keys, asks int) (harness.Sample, error) {
	const limit = 100 // which random asks do not come near
	before := heap()
	takes, closing, err := m.make(limit, keys)
	if err != nil {
		return nil, err
	}
	defer closing()
	fill := takes()
	for i := range keys {
		if ok, err := fill(name(i)); err != nil || !ok {
			return nil, fmt.Errorf("key %d: admitted is %v, error is %v", i, ok, err)
		}
	}
	perKey := (heap() - before) / float64(keys)
	var collections []float64
	for range 3 {
		begin := time.Now()
		runtime.GC()
		collections = append(collections, time.Since(begin).Seconds()*1e3)
	}

	const goroutines = 2
	all := names(keys)
	asking := make([]take, goroutines)
	random := make([]*rand.Rand, goroutines)
	for g := range goroutines {
		asking[g], random[g] = takes(), rand.New(rand.NewPCG(uint64(g), 1))
	}
	runtime.GC()
	sample, err := harness.Timed(goroutines, asks, goroutines*asks, func(g, _ int) (bool, error) {
		return asking[g](all[random[g].IntN(len(all))])
	})
	if err != nil {
		return nil, err
	}
	sample[string(heapPerKey)] = perKey
	sample[string(fullGC)] = harness.Median(collections)
	return sample, nil
}

// heap is what is reachable. What has a finalizer is gone only after the second
// collection.
func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}
