package main

import (
	"sync"
	"sync/atomic"
)

// Rows of sleeping workers: those of bench/wake.c, without the bare futex beside them.

var wakeGroups = []group{
	{[]row{{"second_start", "ns"}}, canPlain, secondStart},
	{[]row{{"wake_idle_p50", "ns"}, {"wake_idle_p99", "ns"}}, canPlain,
		func(p *peer) []float64 { return wakes(p, 1, rest) }},
	{[]row{{"wake_busy_p50", "ns"}, {"wake_busy_p99", "ns"}}, canPlain,
		func(p *peer) []float64 { return wakes(p, 1, spin) }},
}

// From the Add to a worker's return from Get. In between the caller sleeps or works.
func wakes(p *peer, workers int, pass func(ns int64)) []float64 {
	q := p.plain()
	var handled, gotNs atomic.Int64
	var crew sync.WaitGroup
	for range workers {
		crew.Go(func() {
			for {
				key, shutdown := q.Get()
				if shutdown {
					return
				}
				gotNs.Store(now())
				q.Done(key)
				handled.Add(1)
			}
		})
	}
	pass(int64(workers) * size.restNs)
	key := formatKey(1)
	took := make([]float64, size.wakes)
	for i := range took {
		start := now()
		q.Add(key)
		for {
			pass(size.restNs)
			if handled.Load() == int64(i+1) && now()-gotNs.Load() >= size.restNs/2 {
				break
			}
		}
		took[i] = float64(gotNs.Load() - start)
	}
	q.ShutDown()
	crew.Wait()
	return []float64{percentile(took, 0.5), percentile(took, 0.99)}
}

// Two keys for two sleeping workers whose handlers take 100 µs: from the first Add to
// the start of the second handler.
func secondStart(p *peer) []float64 {
	const workers, handlerNs = 2, 100000
	q := p.plain()
	var started, ended atomic.Int64
	var startNs [workers]atomic.Int64
	finished := make(chan struct{})
	var crew sync.WaitGroup
	for range workers {
		crew.Go(func() {
			for {
				key, shutdown := q.Get()
				if shutdown {
					return
				}
				at := now()
				startNs[(started.Add(1)-1)%workers].Store(at)
				spin(handlerNs)
				q.Done(key)
				if ended.Add(1)%workers == 0 {
					finished <- struct{}{}
				}
			}
		})
	}
	keys := [workers]string{formatKey(0), formatKey(1)}
	took := make([]float64, size.wakes/2)
	for i := range took {
		spin(size.restNs)
		start := now()
		for _, key := range keys {
			q.Add(key)
		}
		<-finished
		took[i] = float64(max(startNs[0].Load(), startNs[1].Load()) - start)
	}
	q.ShutDown()
	crew.Wait()
	return []float64{percentile(took, 0.5)}
}
