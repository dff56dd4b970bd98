# Mistakes that are easy to make in the lock. See tso_bug() in CMakeLists.txt.

# A thread goes to sleep without the barrier: a release has not seen it, nor it the release.
tso_bug(sleep_without_barrier sync.c
	[=[wq__lock_barrier(l) && !barrier_for_all())]=]
	[=[false)]=])

# The second thread ends the ownership without one: the owner is in, and nobody sees that.
tso_bug(end_without_barrier sync.c
	[=[if (!barrier_for_all())
		for]=]
	[=[if (false)
		for]=])

tso_bug(heir_does_not_wait sync.c
	[=[if (atomic_load_explicit(&l->inside, memory_order_acquire) != WQ__OUT)
			return false;]=]
	[=[]=])

tso_bug(owner_does_not_look sync.h
	[=[if (wq__likely(atomic_load_explicit(&l->owner, memory_order_relaxed) == me))
		return true;]=]
	[=[return true;]=])

tso_bug(step_back_wakes_nobody sync.c
	[=[	wq__lock_wake(place);
}

/* What a place is told]=]
	[=[}

/* What a place is told]=])

tso_bug(release_does_not_look sync.h
	[=[if (wq__unlikely(atomic_load_explicit(place, memory_order_seq_cst) & WQ__SLEEPERS))]=]
	[=[if (false)]=])

# A sleeper that is not asleep yet does not notice that it was woken.
tso_bug(place_not_moved_on sync.c
	[=[(seen + WQ__WAKE) & WQ__WAKES;]=]
	[=[seen & (WQ__WAKES | 3);]=])

tso_bug(not_announced sync.c
	[=[*seen = was | WQ__SLEEPERS | WQ__BARRIER;]=]
	[=[*seen = was | WQ__BARRIER;]=])

# The second one that comes to sleep has no barrier; the first one's must be for the same lock.
tso_bug(barrier_of_another_lock sync.c
	[=[return !(was & WQ__BARRIER) || *seen & WQ__WAKE_ALL;]=]
	[=[return !(was & WQ__BARRIER);]=])

tso_bug(heir_not_woken sync.c
	[=[same && !heir ?]=]
	[=[same ?]=])

# Where there is no membarrier.
tso_bug(release_without_barrier sync.h
	[=[atomic_exchange_explicit(&l->word, word, memory_order_seq_cst);]=]
	[=[atomic_store_explicit(&l->word, word, memory_order_release);]=])

# Seen by the model PSO alone: x86 does not reorder stores.
tso_bug(release_relaxed sync.h
	[=[atomic_store_explicit(&l->word, word, memory_order_release);]=]
	[=[atomic_store_explicit(&l->word, word, memory_order_relaxed);]=])

tso_bug(owner_leaves_relaxed sync.h
	[=[atomic_store_explicit(&l->inside, WQ__OUT, memory_order_release);]=]
	[=[atomic_store_explicit(&l->inside, WQ__OUT, memory_order_relaxed);]=])

# The lock may be gone as soon as it is free.
tso_bug(lock_touched_when_free sync.h
	[=[	/* The compiler keeps the order; for the CPU see wait_for(). */
]=]
	[=[	atomic_load_explicit(&l->word, memory_order_relaxed);
]=])

# Passing it in the midst of long work.
tso_bug(giver_takes_it_back sync.c
	[=[return !how->gave ||]=]
	[=[return true ||]=])

tso_bug(given_to_nobody sync.h
	[=[atomic_load_explicit(&l->came, memory_order_relaxed) != (uint16_t)p.went;]=]
	[=[true;]=])

tso_bug(nobody_went sync.c
	[=[went + 1, memory_order_relaxed]=]
	[=[went, memory_order_relaxed]=])

# The lane. The key is taken without a barrier: the add before has merged, and is not seen.
tso_lane_bug(take_without_barrier
	[=[atomic_exchange_explicit(bits, held, memory_order_seq_cst);]=]
	[=[atomic_store_explicit(bits, held, memory_order_release);]=])

tso_lane_bug(finish_stores
	[=[if (WQ__BUG(LANE_FINISH_STORES))]=]
	[=[if (true)]=])

tso_lane_bug(mark_stores
	[=[if (WQ__BUG(LANE_MARK_STORES))]=]
	[=[if (true)]=])

# Seen by the model PSO alone.
tso_lane_bug(line_put_relaxed
	[=[(uint64_t)(l->tail + 1) << 32 | id,
	                      memory_order_release);]=]
	[=[(uint64_t)(l->tail + 1) << 32 | id,
	                      memory_order_relaxed);]=])

# An id from the place before is taken for a new one.
tso_lane_bug(line_without_number
	[=[return (uint32_t)(word >> 32) == place + 1 ? (uint32_t)word : 0;]=]
	[=[return (uint32_t)word;]=])

tso_lane_bug(line_overwritten
	[=[if (l->tail - l->head_seen >= WQ__LINE)
			return false;]=]
	[=[]=])
