/*
 * References, and how a few hundred of them are brought into order: by radix,
 * least significant digit first, so that equal times keep their order and the
 * cost does not depend on what the times are.
 */
#ifndef WQ_TIME_SORT_H
#define WQ_TIME_SORT_H

#include <stddef.h>
#include <stdint.h>

enum { WQ__RUN_MAX = 512 }; /* of them are sorted at once */

typedef struct wq__ref {
	int64_t due_ns; /* >= 0 */
	uint64_t what;  /* not 0 */
} wq__ref;

/* Sorts n of them, at most WQ__RUN_MAX. Returns where they are then: ref or other. */
wq__ref *wq__ref_sort(wq__ref *ref, wq__ref *other, size_t n);

#endif
