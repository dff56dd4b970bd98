/*
 * Why the last call failed, as text: one buffer for each thread, behind wq_last_error().
 * Only calls with more than one cause for a status write it, and only when they fail.
 */
#ifndef WQ_BASE_FAIL_H
#define WQ_BASE_FAIL_H

#include <wq/alloc.h>
#include <wq/clock.h>
#include <wq/status.h>

/* Remembers the text, cut off if it is long. */
__attribute__((format(printf, 1, 2), cold)) void wq__fail_text(const char *format, ...);

/* The same, and its value is the status, in sight of whoever analyses the caller. */
#define wq__fail(status, ...) (wq__fail_text(__VA_ARGS__), (status))

/* What many say: WQ_EINVAL, WQ_ENOMEM. */
__attribute__((cold)) int wq__fail_allocator(const wq_allocator *a);
__attribute__((cold)) int wq__fail_clock(const wq_clock *c);
#define wq__fail_memory() wq__fail(WQ_ENOMEM, "out of memory")

/* What failed, and why errno says it did. */
__attribute__((cold)) int wq__fail_system(int status, const char *what);

#endif
