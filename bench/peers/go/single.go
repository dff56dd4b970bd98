package main

// Rows of one thread: those of bench/single.c, bench/bulk.c and bench/limit.c.

var singleGroups = []group{
	{[]row{{"cycle_empty", "ns"}}, canPlain, func(p *peer) []float64 { return cycle(p.plain(), pool(), 0, 1024, 20000) }},
	{[]row{{"cycle_metrics", "ns"}}, canNamed, func(p *peer) []float64 { return cycle(p.named(), pool(), 0, 1024, 20000) }},
	{[]row{{"cycle_1m", "ns"}}, canPlain, func(p *peer) []float64 { return cycle(p.plain(), pool(), size.keys, poolSize(), 5000) }},
	{[]row{{"dup_hot", "ns"}}, canPlain, func(p *peer) []float64 { return duplicates(p, 1, 50000) }},
	{[]row{{"dup_1m", "ns"}}, canPlain, func(p *peer) []float64 { return duplicates(p, size.keys, 8000) }},
	{[]row{{"limited_cycle", "ns"}}, canLimited, limitedCycle},
}

var bulkGroups = []group{
	{[]row{{"bulk_add", "ns"}, {"bulk_get_done", "ns"}}, canPlain, bulk},
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
func bulk(p *peer) []float64 {
	k := pool()
	n := size.keys
	start := now()
	q := p.plain()
	for i := range n {
		q.Add(k.at(i))
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
