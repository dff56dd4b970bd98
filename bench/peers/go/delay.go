package main

import (
	"sync"
	"sync/atomic"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// Rows of keys that wait: add_after of bench/delay.c, bench/burst.c and bench/late.c.

var delayGroups = []group{
	{[]row{{"add_after", "ns"}}, canDelay, addAfter},
	{[]row{{"fire_burst", "ms"}}, canDelay, fireBurst},
}

var lateGroups = []group{
	{[]row{{"late_p50", "ns"}, {"late_p99", "ns"}}, canDelay, late},
	{[]row{{"late_pool_p50", "ns"}, {"late_pool_p99", "ns"}}, canDelay, latePool},
}

// What is still on its way to the goroutine that keeps the times (at most 1,000 of
// client-go's) is not waited for.
func addDelayed(p *peer, k keys, delays []int64) float64 {
	q := p.delayed()
	start := now()
	for i, delay := range delays {
		q.AddAfter(k.at(i), time.Duration(delay))
	}
	settle(p, q)
	took := now() - start
	q.ShutDown()
	return float64(took) / float64(len(delays))
}

func addAfter(p *peer) []float64 {
	return []float64{addDelayed(p, pool(), spans(size.keys, int64(time.Second), int64(time.Minute)))}
}

func getDoneAll(q queue, n int) {
	for range n {
		key, _ := q.Get()
		q.Done(key)
	}
}

// All keys wait for one instant; from then on until all are got and done.
func fireBurst(p *peer) []float64 {
	if p.clocked == nil {
		return fireBurstReal(p)
	}
	k := pool()
	n := size.keys
	began := time.Unix(1000, 0)
	c := testingclock.NewFakeClock(began)
	q := p.clocked(c)
	for i := range n {
		q.AddAfter(k.at(i), time.Minute)
	}
	rest(50e6) // the last of them are on their way
	start := now()
	c.SetTime(began.Add(time.Minute))
	getDoneAll(q, n)
	took := now() - start
	check(q.Len() == 0, "burst: keys are left")
	q.ShutDown()
	return []float64{float64(took) * 1e-6}
}

// On the real clock: the instant lies far enough away for all keys to be there before it.
func fireBurstReal(p *peer) []float64 {
	k := pool()
	n := size.keys
	for ahead := time.Duration(n) * 4 * time.Microsecond; ; ahead *= 2 {
		check(ahead < time.Minute, "burst: the keys cannot be added in time")
		due := now() + int64(ahead)
		q := p.delayed()
		for i := range n {
			q.AddAfter(k.at(i), time.Duration(due-now()))
		}
		settle(p, q)
		if now() >= due {
			q.ShutDown()
			continue
		}
		rest(due - now())
		getDoneAll(q, n)
		took := now() - due
		q.ShutDown()
		return []float64{float64(took) * 1e-6}
	}
}

const (
	lateBlock  = 100
	latePeriod = int64(100 * time.Microsecond)
	lateKeys   = 1024
)

// A key every 100 µs, from its time to its Get's return.
func late(p *peer) []float64 {
	k := pool()
	q := p.delayed()
	took := make([]float64, 0, size.lateBlocks*lateBlock)
	for range size.lateBlocks {
		start := now()
		for i := 1; i <= lateBlock; i++ {
			due := start + int64(i)*latePeriod
			q.AddAfter(k.at(size.keys+len(took)%lateKeys), time.Duration(due-now()))
			key, _ := q.Get()
			took = append(took, float64(now()-due))
			q.Done(key)
		}
	}
	q.ShutDown()
	return []float64{percentile(took, 0.5), percentile(took, 0.99)}
}

// Two workers; all keys of a block wait before the first of them is due.
func latePool(p *peer) []float64 {
	const workers = 2
	k := pool()
	q := p.delayed()
	var due [lateBlock]atomic.Int64
	var lateness [lateBlock]atomic.Int64
	var block, crew sync.WaitGroup
	for range workers {
		crew.Go(func() {
			for {
				key, shutdown := q.Get()
				if shutdown {
					return
				}
				at := now()
				i := int(key[3]-'0')*100 + int(key[4]-'0')*10 + int(key[5]-'0')
				lateness[i].Store(at - due[i].Load())
				q.Done(key)
				block.Done()
			}
		})
	}
	var took []float64
	for range size.lateBlocks {
		block.Add(lateBlock)
		start := now() + int64(time.Millisecond)
		for i := range lateBlock {
			due[i].Store(start + int64(i)*latePeriod)
		}
		for i := range lateBlock {
			q.AddAfter(k.at(i), time.Duration(due[i].Load()-now()))
		}
		block.Wait()
		for i := range lateBlock {
			took = append(took, float64(lateness[i].Load()))
		}
	}
	q.ShutDown()
	crew.Wait()
	return []float64{percentile(took, 0.5), percentile(took, 0.99)}
}
