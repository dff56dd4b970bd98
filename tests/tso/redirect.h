/*
 * Put before a file of the library (-include), so that its atomic operations and
 * system calls go to the machine of machine.h. The file itself is unchanged.
 *
 * The system's headers come first and stay as they are. After them the CPU is
 * one that nobody knows: the library then asks pthread_self() who a thread is,
 * and pauses by a fence for the compiler, both of which can be redirected.
 */
#ifndef WQ_TSO_REDIRECT_H
#define WQ_TSO_REDIRECT_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tso/machine.h"

#undef __x86_64__
#undef __i386__
#undef __aarch64__

#define TSO_SIZE(p) ((unsigned)sizeof(*(p)))
#define TSO_AS(p, v)                                                                               \
	__extension__({                                                                            \
		__typeof__((void)0, *(p)) tso_answer = (__typeof__((void)0, *(p)))(v);             \
		tso_answer;                                                                        \
	})

#undef atomic_init
#undef atomic_load_explicit
#undef atomic_store_explicit
#undef atomic_exchange_explicit
#undef atomic_compare_exchange_strong_explicit
#undef atomic_compare_exchange_weak_explicit
#undef atomic_fetch_add_explicit
#undef atomic_fetch_sub_explicit
#undef atomic_fetch_or_explicit
#undef atomic_fetch_and_explicit
#undef atomic_thread_fence
#undef atomic_signal_fence

#define atomic_init(p, v) tso_init((void *)(uintptr_t)(p), TSO_SIZE(p), (uint64_t)(v))
#define atomic_load_explicit(p, order)                                                             \
	TSO_AS(p, tso_load((const void *)(uintptr_t)(p), TSO_SIZE(p), order))
#define atomic_store_explicit(p, v, order)                                                         \
	tso_store((void *)(uintptr_t)(p), TSO_SIZE(p), (uint64_t)(v), order)
#define atomic_exchange_explicit(p, v, order)                                                      \
	TSO_AS(p, tso_modify((void *)(uintptr_t)(p), TSO_SIZE(p), TSO_SET, (uint64_t)(v)))
#define atomic_fetch_add_explicit(p, v, order)                                                     \
	TSO_AS(p, tso_modify((void *)(uintptr_t)(p), TSO_SIZE(p), TSO_ADD, (uint64_t)(v)))
#define atomic_fetch_sub_explicit(p, v, order)                                                     \
	TSO_AS(p, tso_modify((void *)(uintptr_t)(p), TSO_SIZE(p), TSO_ADD, -(uint64_t)(v)))
#define atomic_fetch_or_explicit(p, v, order)                                                      \
	TSO_AS(p, tso_modify((void *)(uintptr_t)(p), TSO_SIZE(p), TSO_OR, (uint64_t)(v)))
#define atomic_fetch_and_explicit(p, v, order)                                                     \
	TSO_AS(p, tso_modify((void *)(uintptr_t)(p), TSO_SIZE(p), TSO_AND, (uint64_t)(v)))
#define atomic_compare_exchange_strong_explicit(p, expected, v, order, failure)                    \
	tso_compare((void *)(uintptr_t)(p), TSO_SIZE(p), (void *)(expected), (uint64_t)(v))
#define atomic_compare_exchange_weak_explicit(p, expected, v, order, failure)                      \
	tso_compare((void *)(uintptr_t)(p), TSO_SIZE(p), (void *)(expected), (uint64_t)(v))
#define atomic_thread_fence(order) tso_fence(order)
#define atomic_signal_fence(order) ((void)0)

#define pthread_self() ((pthread_t)tso_me())
#define clock_gettime(id, at) ((void)(id), tso_clock(at))
#define sched_getaffinity(pid, size, set) tso_affinity(size, set)
#define abort() tso_fail("abort() in %s", __func__)
#define syscall tso_syscall

#endif
