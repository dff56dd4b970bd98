# Mistakes that are easy to make in the lock. See tso_bug() in CMakeLists.txt.

# A thread goes to sleep without the barrier: a release has not seen it, nor it the release.
tso_bug(sleep_without_barrier sync.c
	[=[if (wq__lock_barrier(l) && !barrier_for_all())]=]
	[=[if (false)]=])

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

/*
 * No wake-up is lost.]=]
	[=[}

/*
 * No wake-up is lost.]=])

tso_bug(release_does_not_look sync.h
	[=[if (wq__unlikely(atomic_load_explicit(place, memory_order_seq_cst) & 1))]=]
	[=[if (false)]=])

# A sleeper that is not asleep yet does not notice that it was woken.
tso_bug(place_not_moved_on sync.c
	[=[&seen, seen + 1,]=]
	[=[&seen, seen,]=])

tso_bug(place_not_odd sync.c
	[=[atomic_fetch_or_explicit(place, 1, memory_order_seq_cst) | 1;]=]
	[=[atomic_load_explicit(place, memory_order_seq_cst);]=])

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
