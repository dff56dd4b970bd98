package main

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Rows of producers and consumers: those of bench/threads.c, a goroutine for a thread.

const (
	hotKeys  = 1000
	hotDraws = 1 << 16
	hotSides = 4
	sideMax  = 8
	backlog  = 1024
	claimed  = 128
)

func flowGroup(name, unit string, producers, consumers int, make func(f *flow)) group {
	return group{[]row{{name, unit}}, canPlain, func(p *peer) []float64 {
		f := &flow{peer: p, producers: producers, consumers: consumers, nkeys: poolSize()}
		make(f)
		return []float64{f.run()}
	}}
}

func plainFlow(f *flow) { f.produce, f.consume = f.addAll, f.getAll }

func rankedFlow(f *flow) { f.produce, f.consume = f.addRanked, f.getAll }

func shortFlow(f *flow) {
	f.nkeys = size.shortKeys
	f.produce, f.consume = f.addShort, f.getShort
}

func hotFlow(f *flow) {
	f.draws = zipf(hotDraws, hotKeys, 1.1)
	f.produce, f.consume = f.addHot, f.getAll
}

func workFlow(f *flow) {
	f.nkeys = size.keys / 10
	f.steps = countSteps()
	f.produce, f.consume = f.addAll, f.getWork
}

var threadGroups = []group{
	flowGroup("pc_1_1", "keys/s", 1, 1, plainFlow),
	flowGroup("pc_4_4", "keys/s", 4, 4, plainFlow),
	{[]row{{"pc_priority_1_1", "keys/s"}}, canRank, flowGroup("", "", 1, 1, rankedFlow).run},
	flowGroup("short_1_1", "keys/s", 1, 1, shortFlow),
	flowGroup("short_2_2", "keys/s", 2, 2, shortFlow),
	flowGroup("short_4_4", "keys/s", 4, 4, shortFlow),
	flowGroup("hot_1_1", "ops/s", 1, 1, hotFlow),
	flowGroup("hot_4_4", "ops/s", 4, 4, hotFlow),
	flowGroup("work_1us", "keys/s", 4, 4, workFlow),
	{[]row{{"pingpong", "ns"}}, canPlain, pingpong},
}

// On a line of its own.
type count struct {
	n atomic.Int64
	_ [120]byte
}

type flow struct {
	peer                 *peer
	producers, consumers int
	nkeys                int
	draws                []uint16
	steps                int
	produce              func(side int) int
	consume              func(side int) int
	q                    queue

	_       [128]byte
	stop    atomic.Bool
	_       [128]byte
	claims  atomic.Int64
	_       [128]byte
	left    atomic.Int64 // keys to come, for queues that cut
	_       [128]byte
	seen    [sideMax]count
	allGone chan struct{}
}

func (f *flow) part(side int) (from, to int) {
	return f.nkeys * side / f.producers, f.nkeys * (side + 1) / f.producers
}

func (f *flow) addAll(side int) int {
	k := pool()
	from, to := f.part(side)
	for i := from; i < to; i++ {
		f.q.Add(k.at(i))
	}
	return to - from
}

func (f *flow) addRanked(side int) int {
	k := pool()
	q := f.q.(ranking)
	from, to := f.part(side)
	for i := from; i < to; i++ {
		q.AddWithOpts(levels[i%3], k.at(i))
	}
	return to - from
}

// The right to add a few keys, as in bench/threads.c. Gosched is what its sched_yield is.
func (f *flow) claim(n int64) {
	for {
		now, seen := f.claims.Load(), int64(0)
		for i := range f.consumers {
			seen += f.seen[i].n.Load()
		}
		if now+n < seen+backlog {
			if f.claims.CompareAndSwap(now, now+n) {
				return
			}
			continue
		}
		runtime.Gosched()
	}
}

func (f *flow) addShort(side int) int {
	k := pool()
	from, to := f.part(side)
	for i := from; i < to; {
		n := min(to-i, claimed)
		f.claim(int64(n))
		for end := i + n; i < end; i++ {
			f.q.Add(k.at(i))
		}
	}
	return to - from
}

func (f *flow) addHot(side int) int {
	k := pool()
	at := side * (hotDraws / hotSides)
	n := 0
	for ; !f.stop.Load(); n++ {
		f.q.Add(k.at(int(f.draws[at])))
		at = (at + 1) % hotDraws
	}
	return n
}

// A queue that cuts is shut down when the last key has come out, not when the last went in.
func (f *flow) gone() {
	if f.peer.cuts && f.left.Add(-1) == 0 {
		close(f.allGone)
	}
}

func (f *flow) getAll(side int) int {
	for n := 0; ; n++ {
		key, shutdown := f.q.Get()
		if shutdown {
			return n
		}
		f.q.Done(key)
		f.gone()
	}
}

func (f *flow) getShort(side int) int {
	for n := 0; ; n++ {
		key, shutdown := f.q.Get()
		if shutdown {
			return n
		}
		f.q.Done(key)
		f.seen[side].n.Store(int64(n + 1))
		f.gone()
	}
}

func (f *flow) getWork(side int) int {
	var x uint64
	for n := 0; ; n++ {
		key, shutdown := f.q.Get()
		if shutdown {
			atomic.AddUint64(&sink, x)
			return n
		}
		x += steps(f.steps)
		f.q.Done(key)
		f.gone()
	}
}

// Waits for the last key where the queue would not give it out any more.
func (f *flow) finish() {
	if f.peer.cuts && f.draws == nil {
		<-f.allGone
	}
	for f.peer.cuts && f.draws != nil && f.q.Len() > 0 {
		runtime.Gosched()
	}
	f.q.ShutDown()
}

func (f *flow) run() float64 {
	pool() // made before anything is timed
	f.q = f.peer.plain()
	f.left.Store(int64(f.nkeys))
	f.allGone = make(chan struct{})

	var ready, done sync.WaitGroup
	var adding atomic.Int64
	begin := make(chan struct{})
	var added, got [sideMax]int
	var mu sync.Mutex
	var last int64
	start := func(n int, counts *[sideMax]int, work func(side int) int, producer bool) {
		for side := range n {
			ready.Add(1)
			done.Add(1)
			go func() {
				ready.Done()
				<-begin
				counts[side] = work(side)
				// The last producer shuts the queue: consumers end when it is empty.
				if producer && adding.Add(-1) == 0 {
					f.finish()
				}
				end := now()
				mu.Lock()
				last = max(last, end)
				mu.Unlock()
				done.Done()
			}()
		}
	}
	adding.Store(int64(f.producers))
	start(f.consumers, &got, f.consume, false)
	start(f.producers, &added, f.produce, true)
	ready.Wait()
	first := now()
	close(begin)
	if f.draws != nil {
		rest(size.hotNs)
		f.stop.Store(true)
	}
	done.Wait()

	nadded, ngot := 0, 0
	for i := range sideMax {
		nadded += added[i]
		ngot += got[i]
	}
	seconds := float64(last-first) * 1e-9
	if f.draws != nil {
		check(ngot > 0 && ngot <= nadded, "hot keys: more came out than went in")
		return float64(nadded+2*ngot) / seconds
	}
	check(nadded == f.nkeys && ngot == nadded, "keys were lost")
	return float64(ngot) / seconds
}

// Two queues, one key to and fro.
func pingpong(p *peer) []float64 {
	a, b := p.plain(), p.plain()
	play := func(from, to queue, serves bool) {
		key := formatKey(1)
		if serves {
			to.Add(key)
		}
		for i := range size.roundTrips {
			got, _ := from.Get()
			from.Done(got)
			// The one who began also keeps the key in the end.
			if !serves || i+1 < size.roundTrips {
				to.Add(key)
			}
		}
	}
	var other sync.WaitGroup
	other.Go(func() { play(b, a, false) })
	start := now()
	play(a, b, true)
	took := now() - start
	other.Wait()
	a.ShutDown()
	b.ShutDown()
	return []float64{float64(took) / float64(size.roundTrips)}
}
