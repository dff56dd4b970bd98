/* The default allocator: aligned, usable from end to end, and everything goes back. */
#include "../support/support.h"

#include "base/alloc.h"

#define HUGE ((size_t)2 << 20) /* a huge page */

static const size_t sizes[] = {
    1,      8,       100,      4095, 4096,     65535,       65536,    65537,
    100000, 1 << 20, HUGE - 1, HUGE, HUGE + 1, HUGE + 5000, 2 * HUGE, 3 * HUGE + 4097,
};

static void pieces_are_aligned_and_whole(void **state)
{
	const wq_allocator *a = &wq__default_allocator;

	(void)state;
	for (size_t i = 0; i < LENGTH(sizes); i++)
		for (size_t align = 1; align <= 4096; align *= 8) {
			unsigned char *p = wq__alloc(a, sizes[i], align);

			assert_non_null(p);
			assert_int_equal((uintptr_t)p % align, 0);
			p[0] = 1;
			memset(p, 0x5a, sizes[i]);
			assert_int_equal(p[sizes[i] - 1], 0x5a);
			wq__free(a, p, sizes[i]);
		}
	wq__free(a, NULL, 5); /* nothing happens */
}

/* Pages of address space that the process has. */
static long address_space(void)
{
	FILE *f = fopen("/proc/self/statm", "r");
	long pages = -1;

	if (f == NULL)
		return -1;
	if (fscanf(f, "%ld", &pages) != 1)
		pages = -1;
	fclose(f);
	return pages;
}

static void everything_goes_back(void **state)
{
	const wq_allocator *a = &wq__default_allocator;

	(void)state;
	for (size_t i = 0; i < LENGTH(sizes); i++) {
		long before = -1;

		for (int round = 0; round < 110; round++) {
			void *p = wq__alloc(a, sizes[i], 64);

			assert_non_null(p);
			wq__free(a, p, sizes[i]);
			if (round == 9) /* by now the heap is as large as it needs to be */
				before = address_space();
		}
		/* 100 rounds that each lost a page would show */
		assert_true(address_space() - before < 100);
	}
}

static void what_cannot_be_had(void **state)
{
	const wq_allocator *a = &wq__default_allocator;

	(void)state;
	assert_null(wq__alloc(a, SIZE_MAX, 8));
	assert_null(wq__alloc(a, SIZE_MAX - HUGE, 8));
	assert_null(wq__alloc(a, SIZE_MAX / 2, 8));
}

/* Where pages are larger than a run, the kernel would clear its neighbours, too. */
static void parts_of_pages_stay(void **state)
{
	unsigned char *p = wq__map(HUGE);

	(void)state;
	assert_non_null(p);
	memset(p, 0x5a, HUGE);
	wq__unmap_pages(p, 1000);
	assert_int_equal(p[0], 0x5a);
	assert_int_equal(p[1000], 0x5a);
	wq__unmap_pages(p, HUGE / 2);
	assert_int_equal(p[0], 0);
	assert_int_equal(p[HUGE / 2], 0x5a);
	wq__unmap(p, HUGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(pieces_are_aligned_and_whole),
	    cmocka_unit_test(everything_goes_back),
	    cmocka_unit_test(what_cannot_be_had),
	    cmocka_unit_test(parts_of_pages_stay),
	};

	return cmocka_run_group_tests_name("alloc", tests, NULL, NULL);
}
