package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/RussellLuo/timingwheel"
)

// How cost grows: rows NAME@X, each a row of the other files with another count.

var keyCounts = []int{1000, 10000, 100000, 1000000, 10000000}

var curveGroups = slices.Concat(
	points("cycle", "ns", keyCounts, canPlain, cycleAt),
	points("threads", "keys/s", []int{1, 2, 4, 8}, canPlain, threadsAt),
	points("waiters", "ns", []int{1, 2, 4, 8, 16, 32, 64}, canPlain, waitersAt),
	points("add_after", "ns", keyCounts[:4], canDelay, addAfterAt),
	points("add_after", "ns", keyCounts[4:], canDelayMany, addAfterAt),
	points("wheel_insert", "ns", keyCounts, canWheel, wheelInsertAt),
)

// controller-runtime takes so long for 10M that many come due meanwhile: other work.
func canDelayMany(p *peer) bool { return canDelay(p) && p.clocked != nil }

func points(name, unit string, at []int, can func(p *peer) bool, run func(p *peer, x int) float64) []group {
	list := make([]group, len(at))
	for i, x := range at {
		list[i] = group{[]row{{fmt.Sprintf("%s@%d", name, x), unit}}, can, func(p *peer) []float64 {
			if size == quickSize {
				x = min(x, 100000)
			}
			return []float64{run(p, x)}
		}}
	}
	return list
}

// Work on n things that begins anew each time, as often as in bench/slices.c.
func again(n int, once func() float64) float64 {
	took := make([]float64, min(max(size.keys/n, 1), 100))
	for i := range took {
		took[i] = once()
	}
	return low(took)
}

func cycleAt(p *peer, n int) float64 {
	k := firstKeys(n + min(n, size.keys))
	return cycle(p.plain(), k, n, k.count(), 5000)[0]
}

func threadsAt(p *peer, n int) float64 {
	return flowGroup("", "", n, n, plainFlow).run(p)[0]
}

func waitersAt(p *peer, n int) float64 { return wakes(p, n, rest)[0] }

func addAfterAt(p *peer, n int) float64 {
	k := firstKeys(n)
	delays := spans(n, int64(time.Second), int64(time.Minute))
	return again(n, func() float64 { return addDelayed(p, k, delays) })
}

func wheelInsertAt(_ *peer, n int) float64 {
	delays := spans(n, int64(time.Second), int64(time.Minute))
	timers := make([]*timingwheel.Timer, n)
	return again(n, func() float64 {
		w := newWheel()
		w.Start()
		defer w.Stop()
		return wheelInsert(w, delays, timers)
	})
}
