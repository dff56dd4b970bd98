/*
 * A day in seconds: many keys, each with its own time of the day, and a manual
 * clock that jumps from one to the next. Every key comes in its nanosecond,
 * not one before, and those of one nanosecond in the order of the calls.
 *
 *     test_behaviour_day [--seed N]
 */
#include "../support/support.h"

#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif

enum {
#ifdef SANITIZED
	KEYS = 100000,
#else
	KEYS = 1000000,
#endif
	SHIFTS = 4, /* the keys are added in so many parts of the day */
};

#define DAY_NS (24 * WQ_HOUR)

struct firing {
	int64_t due_ns;
	uint32_t key; /* keys are numbered in the order of their adds */
};

static uint64_t rng;

static int by_time(const void *a, const void *b)
{
	const struct firing *x = a, *y = b;

	if (x->due_ns != y->due_ns)
		return x->due_ns < y->due_ns ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

/* After `from`: some in a minute's crowd, some at full seconds, the others anywhere. */
static int64_t some_time(int64_t from_ns)
{
	int64_t due = from_ns + 1 + (int64_t)rng_below(&rng, (uint64_t)(DAY_NS - from_ns));

	switch (rng_below(&rng, 8)) {
	case 0:
		due = from_ns + 1 + (int64_t)rng_below(&rng, WQ_MINUTE);
		break;
	case 1:
	case 2:
		due = due - due % WQ_SECOND + WQ_SECOND;
		break;
	}
	return due;
}

static void add_shift(wq *q, const struct firing *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int64_t now = wq_now(q);
		uint32_t key = f[i].key;

		if (i % 2)
			IS(wq_add_at(q, &key, sizeof key, f[i].due_ns), WQ_WAITING);
		else
			IS(wq_add_after(q, &key, sizeof key, f[i].due_ns - now), WQ_WAITING);
	}
}

/* All of one nanosecond. Returns how many. */
static size_t fire(wq *q, wq_manual_clock *mc, const struct firing *f, size_t n)
{
	int64_t due = f[0].due_ns;
	size_t i = 0;
	wq_item it;

	IS(wq_next_deadline(q), due);
	if (due - 1 >= wq_now(q))
		IS(wq_manual_clock_set(mc, due - 1), WQ_OK);
	IS(wq_try_get(q, &it), WQ_EAGAIN);
	IS(wq_manual_clock_set(mc, due), WQ_OK);
	for (; i < n && f[i].due_ns == due; i++) {
		IS(wq_try_get(q, &it), WQ_OK);
		IS((int64_t)it.len, sizeof f[i].key);
		if (memcmp(it.key, &f[i].key, it.len) != 0)
			fail_msg("at %lld another key than %u came", (long long)due, f[i].key);
		IS(it.added_ns, due);
		IS(wq_done(q, &it), WQ_OK);
	}
	return i;
}

static void a_day_of_keys_in_their_nanoseconds(void **state)
{
	struct firing *f = calloc(KEYS, sizeof *f);
	wq_manual_clock *mc;
	size_t at = 0, added = 0;
	wq *q;

	(void)state;
	assert_non_null(f);
	IS(wq_manual_clock_new(&mc, 0), WQ_OK);

	wq_clock clock = wq_manual_clock_clock(mc);

	IS(wq_new(&q, &(wq_options){.clock = &clock, .seed = 1}), WQ_OK);
	for (int shift = 0; shift < SHIFTS; shift++) {
		int64_t from = shift * (DAY_NS / SHIFTS);
		size_t until = (size_t)(shift + 1) * (KEYS / SHIFTS);

		/* What is due before the next shift begins. */
		while (at < added && f[at].due_ns <= from)
			at += fire(q, mc, f + at, added - at);
		IS(wq_manual_clock_set(mc, from), WQ_OK);
		for (size_t i = added; i < until; i++)
			f[i] = (struct firing){some_time(from), (uint32_t)i};
		add_shift(q, f + added, until - added);
		added = until;
		qsort(f + at, added - at, sizeof *f, by_time);
	}
	while (at < added)
		at += fire(q, mc, f + at, added - at);
	IS(wq_next_deadline(q), WQ_NEVER);
	IS(wq_len(q), 0);
	IS(wq_free(q), 0);
	IS(wq_manual_clock_free(mc), WQ_OK);
	free(f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_day_of_keys_in_their_nanoseconds),
	};

	rng = seed_from(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
