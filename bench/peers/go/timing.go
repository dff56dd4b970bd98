package main

import (
	"slices"
	"time"
)

// How bench/slices.c times the work of one thread: many slices of about 1 ms,
// each after a part that warms the caches, and the value is the 5th percentile.
// A collection that runs in between is therefore not in it, nor is a slice in
// which a table grows: in the peers' favour.

var began = time.Now()

func now() int64 { return int64(time.Since(began)) }

func rest(ns int64) { time.Sleep(time.Duration(ns)) }

func spin(ns int64) {
	for start := now(); now()-start < ns; {
	}
}

// The value below which the part p of the samples lies; sorts them. As
// bench_percentile() has it.
func percentile(samples []float64, p float64) float64 {
	slices.Sort(samples)
	return samples[min(int(float64(len(samples))*p), len(samples)-1)]
}

func low(slice []float64) float64 { return percentile(slice, 0.05) }

func inSlices(ops int, run func(n int)) float64 {
	ops = max(ops/size.sliceParts, 1)
	took := make([]float64, size.slices)
	for i := range took {
		run(ops / 2)
		start := now()
		run(ops)
		took[i] = float64(now()-start) / float64(ops)
	}
	return low(took)
}

var sink uint64

// A chain of n multiplications, as in bench/workers.c.
func steps(n int) uint64 {
	x := uint64(n)
	for range n {
		x = x*6364136223846793005 + 1
	}
	return x
}

// How many of them take 1 µs.
func countSteps() int {
	return int(1000 / inSlices(500000, func(n int) { sink += steps(n) }))
}
