/* See sort.h. */
#include "time/sort.h"

#include <assert.h>
#include <string.h>

enum {
	INSERT_MAX = 20, /* so few are sorted faster by inserting */
	DIGIT_BITS = 8,  /* at most */
};

static void insert_sort(wq__ref *ref, size_t n)
{
	for (size_t i = 1; i < n; i++) {
		wq__ref it = ref[i];
		size_t at = i;

		for (; at > 0 && ref[at - 1].due_ns > it.due_ns; at--)
			ref[at] = ref[at - 1];
		ref[at] = it;
	}
}

/* By one digit. */
static void scatter(wq__ref *to, const wq__ref *from, size_t n, unsigned shift, unsigned width)
{
	uint16_t at[1 << DIGIT_BITS], sum = 0;
	unsigned values = 1u << width;

	memset(at, 0, values * sizeof at[0]);
	for (size_t i = 0; i < n; i++)
		at[(uint64_t)from[i].due_ns >> shift & (values - 1)]++;
	for (unsigned v = 0; v < values; v++) {
		uint16_t here = at[v];

		at[v] = sum;
		sum = (uint16_t)(sum + here);
	}
	for (size_t i = 0; i < n; i++)
		to[at[(uint64_t)from[i].due_ns >> shift & (values - 1)]++] = from[i];
}

wq__ref *wq__ref_sort(wq__ref *ref, wq__ref *other, size_t n)
{
	uint64_t differ = 0;

	assert(n <= WQ__RUN_MAX);
	if (n <= INSERT_MAX) {
		insert_sort(ref, n);
		return ref;
	}
	for (size_t i = 1; i < n; i++)
		differ |= (uint64_t)(ref[i].due_ns ^ ref[0].due_ns);
	if (!differ)
		return ref;

	unsigned bits = 64 - (unsigned)__builtin_clzll(differ);
	unsigned digits = (bits + DIGIT_BITS - 1) / DIGIT_BITS;
	unsigned width = (bits + digits - 1) / digits;

	for (unsigned d = 0; d < digits; d++) {
		wq__ref *from = ref;

		scatter(other, from, n, d * width, width);
		ref = other;
		other = from;
	}
	return ref;
}
