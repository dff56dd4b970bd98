/* Is it this key? For every length up to some, every byte that may differ, and no byte too many. */
#include "../support/support.h"

#include <sys/mman.h>

#include "queue/entry.h"

enum { LEN_MAX = 70, BYTES = 4096 };

static uint64_t seed;

/* So many bytes, behind which nothing can be read. */
static char *guarded(char *pages, size_t len)
{
	return pages + BYTES - len;
}

static char *pages_new(void)
{
	char *pages =
	    mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(pages != MAP_FAILED);
	assert_int_equal(mprotect(pages + BYTES, BYTES, PROT_NONE), 0);
	return pages;
}

static void compares_all_bytes_and_no_more(void **state)
{
	char *pages = pages_new(), *entry_pages = pages_new();
	uint64_t rng = seed;

	(void)state;
	for (size_t len = 0; len <= LEN_MAX; len++) {
		char *key = guarded(pages, len);
		/* The NUL behind the key is the last byte that can be read. */
		struct wq__entry *e =
		    (struct wq__entry *)(void *)guarded(entry_pages,
		                                        (WQ__ENTRY_HEADER + len + 1 + 7) / 8 * 8);

		for (size_t i = 0; i < len; i++)
			key[i] = (char)rng_next(&rng);
		wq__entry_init(e, 1, key, len, 0);
		assert_int_equal(wq__entry_len(e), len);
		assert_true(wq__entry_is(e, key, len));
		for (size_t i = 0; i < len; i++)
			for (int bit = 0; bit < 8; bit++) {
				key[i] = (char)(key[i] ^ 1 << bit);
				assert_false(wq__entry_is(e, key, len));
				key[i] = (char)(key[i] ^ 1 << bit);
			}
		for (size_t other = 0; other <= LEN_MAX; other++)
			if (other != len)
				assert_false(wq__entry_is(e, guarded(pages, other), other));
		/* The same low 16 bits of the length. */
		e->bits |= WQ__LEN_HIGH;
		assert_false(wq__entry_is(e, key, len));
	}
	munmap(pages, 2 * BYTES);
	munmap(entry_pages, 2 * BYTES);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(compares_all_bytes_and_no_more),
	};

	seed = seed_from(argc, argv);
	return cmocka_run_group_tests_name("entry", tests, NULL, NULL);
}
