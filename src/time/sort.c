/* See sort.h. */
#include "time/sort.h"

#include <assert.h>
#include <string.h>

enum {
	INSERT_MAX = 20, /* so few are sorted faster by inserting */
	DIGIT_BITS = 8,  /* at most */
	DIGITS = 64 / DIGIT_BITS,
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

/* One digit: `count` of its values becomes where each of them begins. */
static void scatter(wq__ref *to, const wq__ref *from, size_t n, uint16_t *count, unsigned shift,
                    unsigned mask)
{
	uint16_t sum = 0;

	for (unsigned v = 0; v <= mask; v++) {
		uint16_t here = count[v];

		count[v] = sum;
		sum = (uint16_t)(sum + here);
	}
	for (size_t i = 0; i < n; i++)
		to[count[(uint64_t)from[i].due_ns >> shift & mask]++] = from[i];
}

wq__ref *wq__ref_sort(wq__ref *ref, wq__ref *other, size_t n)
{
	uint16_t count[DIGITS][1 << DIGIT_BITS];
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
	unsigned width = (bits + digits - 1) / digits, mask = (1u << width) - 1;

	for (unsigned d = 0; d < digits; d++)
		memset(count[d], 0, (mask + 1) * sizeof count[d][0]);
	for (size_t i = 0; i < n; i++)
		for (unsigned d = 0; d < digits; d++)
			count[d][(uint64_t)ref[i].due_ns >> d * width & mask]++;
	for (unsigned d = 0; d < digits; d++) {
		wq__ref *from = ref;

		scatter(other, from, n, count[d], d * width, mask);
		ref = other;
		other = from;
	}
	return ref;
}
