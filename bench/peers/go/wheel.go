package main

import (
	"runtime"
	"sync/atomic"
	"time"

	"github.com/RussellLuo/timingwheel"
)

// Rows of timers: those of bench/wheel.c. The wheel is the one of its README, 1 ms and 20 slots.

var wheelGroups = []group{
	{[]row{{"wheel_insert", "ns"}, {"wheel_cancel", "ns"}, {"wheel_expire", "ns"}}, canWheel,
		func(*peer) []float64 {
			insert, cancel := wheelInsertCancel()
			runtime.GC()
			return []float64{insert, cancel, wheelExpire()}
		}},
}

func newWheel() *timingwheel.TimingWheel { return timingwheel.NewTimingWheel(time.Millisecond, 20) }

func wheelInsert(w *timingwheel.TimingWheel, delays []int64, timers []*timingwheel.Timer) float64 {
	nothing := func() {}
	start := now()
	for i, delay := range delays {
		timers[i] = w.AfterFunc(time.Duration(delay), nothing)
	}
	return float64(now()-start) / float64(len(delays))
}

func wheelInsertCancel() (insert, cancel float64) {
	n := size.keys
	delays := spans(n, int64(time.Second), int64(time.Minute))
	order := randomOrder(n)
	timers := make([]*timingwheel.Timer, n)
	shuffled := make([]*timingwheel.Timer, n)
	w := newWheel()
	w.Start()
	insert = wheelInsert(w, delays, timers)
	for i, at := range order {
		shuffled[i] = timers[at]
	}
	start := now()
	for _, t := range shuffled {
		t.Stop()
	}
	cancel = float64(now()-start) / float64(n)
	w.Stop()
	return insert, cancel
}

// The wheel is not started before all timers are in it and due: then it advances over
// them at once. Their times count from its own beginning, so that none has to come
// down from a higher wheel. Each runs in a goroutine of its own, as the wheel has it.
func wheelExpire() float64 {
	n := size.keys
	delays := spans(n, 1, int64(10*time.Millisecond))
	var fired atomic.Int64
	finished := make(chan int64, 1)
	fire := func() {
		if fired.Add(1) == int64(n) {
			finished <- now()
		}
	}
	w := newWheel()
	base := time.Now().Add(time.Millisecond)
	for i := range n {
		w.AfterFunc(time.Until(base.Add(time.Duration(delays[i]))), fire)
	}
	rest(20e6)
	start := now()
	w.Start()
	end := <-finished
	w.Stop()
	return float64(end-start) / float64(n)
}
