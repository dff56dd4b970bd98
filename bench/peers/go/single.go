package main

import "sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

// Rows of one thread: those of bench/single.c, bench/bulk.c and bench/limit.c.

var singleGroups = []group{
	{[]row{{"cycle_empty", "ns"}}, canPlain, func(p *peer) []float64 { return cycle(p.plain(), pool(), 0, 1024, 20000) }},
	{[]row{{"cycle_metrics", "ns"}}, canNamed, func(p *peer) []float64 { return cycle(p.named(), pool(), 0, 1024, 20000) }},
	{[]row{{"cycle_1m", "ns"}}, canPlain, func(p *peer) []float64 { return cycle(p.plain(), pool(), size.keys, poolSize(), 5000) }},
	{[]row{{"cycle_priority", "ns"}}, canRank, cyclePriority},
	{[]row{{"dup_hot", "ns"}}, canPlain, func(p *peer) []float64 { return duplicates(p, 1, 50000) }},
	{[]row{{"dup_1m", "ns"}}, canPlain, func(p *peer) []float64 { return duplicates(p, size.keys, 8000) }},
	{[]row{{"limited_cycle", "ns"}}, canLimited, limitedCycle},
}

var bulkGroups = []group{
	{[]row{{"bulk_add", "ns"}, {"bulk_get_done", "ns"}}, canPlain,
		func(p *peer) []float64 { q := p.plain(); return bulk(p, q, func(key string, i int) { q.Add(key) }) }},
	{[]row{{"bulk_add_priority", "ns"}, {"bulk_get_done_priority", "ns"}}, canRank,
		func(p *peer) []float64 {
			q := p.ranked()
			return bulk(p, q, func(key string, i int) { q.AddWithOpts(levels[i%3], key) })
		}},
}

// Three priorities, in turn.
var levels = func() (o [3]priorityqueue.AddOpts) {
	for i := range o {
		o[i].Priority = &i
	}
	return
}()

// As cycle, on an empty queue, with priorities.
func cyclePriority(p *peer) []float64 {
	k := pool()
	q := p.ranked()
	next := 0
	ns := inSlices(20000, func(n int) {
		for range n {
			q.AddWithOpts(levels[next%3], k.at(next))
			key, shutdown := q.Get()
			if shutdown {
				check(false, "cycle_priority: shut down")
			}
			q.Done(key)
			next = (next + 1) % 1024
		}
	})
	check(q.Len() == 0, "cycle_priority: keys were lost")
	q.ShutDown()
	return []float64{ns}
}

// Add a key, Get the head, Done; others keys are in line all the time.
func cycle(q queue, k keys, others, span, ops int) []float64 {
	for i := range others {
		q.Add(k.at(i))
	}
	next := others
	ns := inSlices(ops, func(n int) {
		for range n {
			q.Add(k.at(next))
			key, shutdown := q.Get()
			if shutdown {
				check(false, "cycle: shut down")
			}
			q.Done(key)
			if next++; next == span {
				next = 0
			}
		}
	})
	check(q.Len() == others, "cycle: keys were lost")
	q.ShutDown()
	return []float64{ns}
}

func duplicates(p *peer, nkeys, ops int) []float64 {
	k := shuffledKeys(nkeys)
	q := p.plain()
	for i := range nkeys {
		q.Add(k.at(i))
	}
	next := 0
	ns := inSlices(ops, func(n int) {
		for range n {
			q.Add(k.at(next))
			if next++; next == nkeys {
				next = 0
			}
		}
		settle(p, q)
	})
	check(q.Len() == nkeys, "dup: an Add did not merge")
	q.ShutDown()
	return []float64{ns}
}

// Keys into a fresh queue, and out again.
func bulk(p *peer, q queue, add func(key string, i int)) []float64 {
	k := pool()
	n := size.keys
	start := now()
	for i := range n {
		add(k.at(i), i)
	}
	settle(p, q)
	added := now()
	for range n {
		key, _ := q.Get()
		q.Done(key)
	}
	done := now()
	check(q.Len() == 0, "bulk: keys are left")
	q.ShutDown()
	return []float64{float64(added-start) / float64(n), float64(done-added) / float64(n)}
}

func limitedCycle(p *peer) []float64 {
	const nkeys = 1024
	k := pool()
	q := p.limited()
	next := 0
	cycles := func(n int) {
		for range n {
			key := k.at(next)
			q.AddRateLimited(key)
			if q.NumRequeues(key) != 1 {
				check(false, "limited_cycle: not counted")
			}
			q.Forget(key)
			next = (next + 1) % nkeys
		}
	}
	// Most keys come to wait for seconds: the bucket has long been empty.
	cycles(nkeys)
	ns := inSlices(10000, cycles)
	q.ShutDown()
	return []float64{ns}
}
