/*
 * A day in seconds: many keys, each with its own time of the day, and a manual
 * clock that jumps from one to the next. Every key comes in its nanosecond,
 * not one before, and those of one nanosecond in the order of the calls. Now
 * and then the clock jumps too far: then all that it passed come by their times.
 *
 *     test_behaviour_day [--seed N]
 */
#include "../support/support.h"

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
	SHIFTS = 1000, /* the keys are added at so many times of the day */
	SHIFT_KEYS = KEYS / SHIFTS,
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

/*
 * After `from`: some in a minute's crowd, some at full seconds of the day, some
 * at those that come soon or just beside them, the others anywhere.
 */
static int64_t some_time(int64_t from_ns)
{
	int64_t soon = from_ns + 1 + (int64_t)rng_below(&rng, WQ_MINUTE);
	int64_t due = from_ns + 1 + (int64_t)rng_below(&rng, (uint64_t)(DAY_NS - from_ns));

	switch (rng_below(&rng, 8)) {
	case 0:
		return soon;
	case 1:
		return due - due % WQ_SECOND + WQ_SECOND;
	case 2:
		return soon - soon % WQ_SECOND + WQ_SECOND + (int64_t)rng_below(&rng, 3);
	default:
		return due;
	}
}

static int64_t shift_begins(size_t shift)
{
	return (int64_t)shift * (DAY_NS / SHIFTS);
}

/* The keys from `key` on, whose times these are. */
static void add_shift(wq_queue *q, uint32_t key, const struct firing *f)
{
	int64_t now = wq_now(q);

	for (size_t i = 0; i < SHIFT_KEYS; i++, key++) {
		if (i % 2)
			IS(wq_add_at(q, &key, sizeof key, f[i].due_ns), WQ_DELAYED);
		else
			IS(wq_add_after(q, &key, sizeof key, f[i].due_ns - now), WQ_DELAYED);
	}
}

/*
 * All of the next nanosecond, or of the time until a later one that is not
 * after `until`. Returns how many.
 */
static size_t fire(wq_queue *q, wq_manual_clock *mc, const struct firing *f, size_t n,
                   int64_t until_ns)
{
	int64_t now = f[0].due_ns;
	size_t i = 0;
	wq_item it;

	IS(wq_next_deadline(q), now);
	IS(wq_manual_clock_set(mc, now - 1), WQ_OK);
	IS(wq_try_get(q, &it), WQ_EAGAIN);
	if (rng_below(&rng, 1000) == 0)
		now += (int64_t)rng_below(&rng, (uint64_t)(until_ns - now) + 1);
	IS(wq_manual_clock_set(mc, now), WQ_OK);
	for (; i < n && f[i].due_ns <= now; i++) {
		IS(wq_try_get(q, &it), WQ_OK);
		IS((int64_t)it.len, sizeof f[i].key);
		if (memcmp(it.key, &f[i].key, it.len) != 0)
			fail_msg("at %lld another key than %u came", (long long)now, f[i].key);
		IS(it.added_ns, f[i].due_ns);
		IS(wq_done(q, &it), WQ_OK);
	}
	return i;
}

static void a_day_of_keys_in_their_nanoseconds(void **state)
{
	/* By key, which is the order of the adds, and by time. */
	struct firing *added = calloc(KEYS, sizeof *added), *f = calloc(KEYS, sizeof *f);
	wq_manual_clock *mc;
	size_t at = 0;
	wq_queue *q;

	(void)state;
	assert_non_null(added);
	assert_non_null(f);
	for (size_t i = 0; i < KEYS; i++)
		added[i] = (struct firing){some_time(shift_begins(i / SHIFT_KEYS)), (uint32_t)i};
	memcpy(f, added, KEYS * sizeof *f);
	qsort(f, KEYS, sizeof *f, by_time);
	IS(wq_manual_clock_new(&mc, 0), WQ_OK);

	wq_clock clock = wq_manual_clock_clock(mc);

	IS(wq_new(&q, &(wq_options){.clock = &clock, .seed = 1}), WQ_OK);
	for (size_t shift = 0; shift < SHIFTS; shift++) {
		int64_t until = shift_begins(shift + 1);

		IS(wq_manual_clock_set(mc, shift_begins(shift)), WQ_OK);
		add_shift(q, (uint32_t)(shift * SHIFT_KEYS), added + shift * SHIFT_KEYS);
		if (shift + 1 == SHIFTS)
			until = 2 * DAY_NS;
		/* What is due by then is not added later: it is in the queue now. */
		while (at < KEYS && f[at].due_ns <= until)
			at += fire(q, mc, f + at, KEYS - at, until);
	}
	IS((int64_t)at, KEYS);
	IS(wq_try_get(q, &(wq_item){0}), WQ_EAGAIN);
	IS(wq_next_deadline(q), WQ_NEVER);
	IS(count_keys(q), 0);
	IS(wq_free(q), 0);
	IS(wq_manual_clock_free(mc), WQ_OK);
	free(added);
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
