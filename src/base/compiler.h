/* Hints to the compiler, and nothing else. */
#ifndef WQ_BASE_COMPILER_H
#define WQ_BASE_COMPILER_H

#define wq__likely(x) __builtin_expect(!!(x), 1)
#define wq__unlikely(x) __builtin_expect(!!(x), 0)
#define wq__prefetch(p) __builtin_prefetch(p)

/*
 * For writing: the line is taken from other CPUs' caches at once. gcc knows the
 * instruction only if it is told the model; CPUs that do not have it do nothing.
 */
#if defined(__x86_64__)
#define wq__prefetch_to_write(p) __asm__ volatile("prefetchw %0" ::"m"(*(const char *)(p)))
#else
#define wq__prefetch_to_write(p) __builtin_prefetch(p, 1)
#endif

#define wq__forced inline __attribute__((always_inline))
#define wq__apart __attribute__((noinline))
#define wq__cold __attribute__((cold, noinline))

#define wq__container_of(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))

#endif
