/* Sorting references: every length, times of every kind, against insertion into a sorted array. */
#include "../support/support.h"

#include "time/sort.h"

static uint64_t seed;

/* Stable, and too simple to be wrong. */
static void sort_simply(wq__ref *ref, size_t n)
{
	for (size_t i = 1; i < n; i++)
		for (size_t at = i; at > 0 && ref[at].due_ns < ref[at - 1].due_ns; at--) {
			wq__ref it = ref[at];

			ref[at] = ref[at - 1];
			ref[at - 1] = it;
		}
}

/* The caller's memory: on the heap, so that the sanitizers see its ends. */
static void check(const wq__ref *in, size_t n)
{
	wq__ref *a = malloc((n + 1) * sizeof *a), *b = malloc((n + 1) * sizeof *b);
	wq__ref *want = malloc((n + 1) * sizeof *want), *got;

	assert_true(a && b && want);
	memcpy(a, in, n * sizeof *a);
	memcpy(want, in, n * sizeof *want);
	sort_simply(want, n);
	got = wq__ref_sort(a, b, n);
	assert_true(got == a || got == b);
	assert_memory_equal(got, want, n * sizeof *got);
	free(a);
	free(b);
	free(want);
}

static void fill(uint64_t *rng, wq__ref *ref, size_t n, uint64_t base, uint64_t mask)
{
	for (size_t i = 0; i < n; i++)
		ref[i] =
		    (wq__ref){.due_ns = (int64_t)(base | (rng_next(rng) & mask)), .what = i + 1};
}

static void every_length(void **state)
{
	wq__ref ref[WQ__RUN_MAX] = {0};
	uint64_t rng = seed;

	(void)state;
	for (size_t n = 0; n <= WQ__RUN_MAX; n++) {
		fill(&rng, ref, n, UINT64_C(1) << 40, (1 << 18) - 1);
		check(ref, n);
	}
}

/* Times that differ in any bits: one, some, all, none; so every number and width of digits. */
static void every_span(void **state)
{
	static const size_t sizes[] = {2, 20, 21, 100, WQ__RUN_MAX};
	wq__ref ref[WQ__RUN_MAX] = {0};
	uint64_t rng = seed;

	(void)state;
	for (size_t s = 0; s < LENGTH(sizes); s++)
		for (unsigned bits = 0; bits <= 63; bits++) {
			uint64_t span = (UINT64_C(1) << bits) - 1;

			fill(&rng, ref, sizes[s], 0, span);
			check(ref, sizes[s]);
			fill(&rng, ref, sizes[s], INT64_MAX & ~span, span);
			check(ref, sizes[s]);
			fill(&rng, ref, sizes[s], 0, bits > 0 ? UINT64_C(1) << (bits - 1) : 0);
			check(ref, sizes[s]);
			fill(&rng, ref, sizes[s], 0, span & 0x4000100010030005);
			check(ref, sizes[s]);
		}
}

/* All but one of one time; ascending; descending. */
static void every_shape(void **state)
{
	wq__ref ref[WQ__RUN_MAX] = {0};
	uint64_t rng = seed;

	(void)state;
	for (size_t n = 1; n <= WQ__RUN_MAX; n += 7) {
		fill(&rng, ref, n, 1000, 0);
		ref[rng_below(&rng, n)].due_ns = rng_below(&rng, 2) ? 999 : INT64_MAX;
		check(ref, n);
		for (size_t i = 0; i < n; i++)
			ref[i].due_ns = (int64_t)i * 1000;
		check(ref, n);
		for (size_t i = 0; i < n; i++)
			ref[i].due_ns = (int64_t)(n - i) * 1000;
		check(ref, n);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_length),
	    cmocka_unit_test(every_span),
	    cmocka_unit_test(every_shape),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("sort", tests, NULL, NULL);
}
